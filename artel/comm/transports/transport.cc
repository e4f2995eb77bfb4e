#include "artel/comm/transports/transport.h"

#include <cstring>
#include <new>

#include "artel/base/error.h"
#include "artel/comm/shm/channel.h"

namespace artel::comm {

std::string rank_name(int rank, int size, int servers) {
  const int server = rank - (size - servers);
  return server >= 0 ? fmt::format("server {} (rank {})", server, rank)
                     : fmt::format("rank {}", rank);
}

SharedBytes Transport::allocate(size_t bytes) {
  constexpr std::align_val_t kAlignment{64};
  auto* memory = static_cast<std::byte*>(::operator new(std::max<size_t>(bytes, 1), kAlignment));
  std::memset(memory, 0, bytes);
  return SharedBytes(memory, [](std::byte* data) { ::operator delete(data, kAlignment); });
}

std::optional<uint64_t> Transport::place_of(std::span<const std::byte>) const { return {}; }

std::byte* Transport::at_place(uint64_t, size_t) const { return nullptr; }

void Transport::map_place(uint64_t, std::span<std::byte>, bool) const {
  fail(ErrorKind::unsupported, "[comm {}] ranks share no memory that could be mapped", name());
}

uint64_t Transport::prepare_channel(int) { return 0; }

std::unique_ptr<shm::Channel> Transport::open_channel(std::span<const int>, uint64_t) {
  return nullptr;
}

bool Transport::native_all_reduce(std::span<std::byte>, ElementType, const Reduction&) {
  return false;
}

namespace {

std::string sign_of_life(const PeerStatus& status) {
  return fmt::format("last seen {:.1f} s ago{}", status.silent_seconds,
                     status.phase.empty() ? "" : fmt::format(" in {}", status.phase));
}

}  // namespace

int Transport::suspect(int peer) {
  constexpr double kSilence = 1.5;  // three signs of life are missing
  if (status(peer).silent_seconds > kSilence) return peer;
  for (int other = 0; other < size(); ++other) {
    const PeerStatus now = status(other);
    if (other != rank_ && !now.left && now.silent_seconds > kSilence) return other;
  }
  return peer;
}

std::string Transport::describe(int peer) {
  const PeerStatus now = status(peer);
  return fmt::format("{} on host {}, {}", rank_name(peer, size(), servers_), now.host,
                     sign_of_life(now));
}

std::string Transport::death_notice(int peer) {
  const PeerStatus now = status(peer);
  return fmt::format("{} on host {} (process {}) died, {}", rank_name(peer, size(), servers_),
                     now.host, now.process, sign_of_life(now));
}

}  // namespace artel::comm
