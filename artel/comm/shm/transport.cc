#include <array>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

#include "artel/base/host_name.h"
#include "artel/base/mutex.h"
#include "artel/comm/shm/channel.h"
#include "artel/comm/shm/mailbox.h"
#include "artel/comm/transports/builtin_transports.h"

namespace artel::comm::shm {
namespace {

// Text in words that other ranks may read concurrently, padded with zeros.
template <size_t n>
void write_words(std::string_view text, std::atomic<uint64_t> (&to)[n]) {
  std::array<uint64_t, n> words{};
  std::memcpy(words.data(), text.data(), std::min(text.size(), sizeof words));
  for (size_t i = 0; i < n; ++i) to[i].store(words[i], std::memory_order_relaxed);
}

template <size_t n>
std::string read_words(const std::atomic<uint64_t> (&from)[n]) {
  std::array<uint64_t, n> words{};
  for (size_t i = 0; i < n; ++i) words[i] = from[i].load(std::memory_order_relaxed);
  return {reinterpret_cast<const char*>(words.data()), sizeof words};
}

std::string up_to_zero(const std::string& text) { return text.substr(0, text.find('\0')); }

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Calls `beat` twice a second from its own thread, so others can tell a rank that computes from one
// that hangs.
class Heartbeat {
 public:
  template <typename Beat>
  explicit Heartbeat(Beat beat)
      : thread_([this, beat] {
          MutexLock lock(mutex_);
          do beat();
          while (!stop_.wait_for(lock, std::chrono::milliseconds(500),
                                 [this]() ARTEL_REQUIRES(mutex_) { return stopped_; }));
        }) {}
  ~Heartbeat() {
    {
      const MutexLock lock(mutex_);
      stopped_ = true;
    }
    stop_.notify_one();
    thread_.join();
  }

 private:
  Mutex mutex_;
  Condition stop_;
  bool stopped_ ARTEL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

class ShmTransport : public Transport {
 public:
  ShmTransport(const SegmentOptions& options, int servers, std::function<bool(int)> is_vital,
               const std::function<std::string()>& vitals)
      : is_vital_(std::move(is_vital)),
        segment_(std::make_shared<Segment>(options)),
        mailbox_(*segment_, all_ranks(options.size), traffic_),
        heartbeat_([segment = segment_.get(), vitals] {
          Card& card = segment->card(segment->rank());
          try {
            if (vitals) write_words(vitals(), card.vitals);
          } catch (const std::exception& error) {
            // This thread is not joined for its result, so the users of the group get the error.
            segment->record_failure(
                ErrorKind::internal,
                fmt::format("[comm shm] vitals of rank {}: {}", segment->rank(), error.what()));
          }
          card.give_sign_of_life();
        }) {
    rank_ = options.rank;
    servers_ = servers;
    hosts_.assign(options.size, host_name());
    traffic_.resize(options.size);
  }

  std::string_view name() const override { return "shm"; }

  std::unique_ptr<Transfer> send(int peer, uint64_t tag, std::span<const std::byte> data) override {
    segment_->throw_if_failed();  // messages may arrive in time although the group has failed
    return mailbox_.send(peer, tag, data);
  }
  std::unique_ptr<Transfer> receive(int peer, uint64_t tag, std::span<std::byte> data) override {
    return mailbox_.receive(peer, tag, data);
  }

  SharedBytes allocate(size_t bytes) override {
    return SharedBytes(segment_->allocate(bytes),
                       [segment = segment_](std::byte* data) { segment->free(data); });
  }

  // Never freed: a peer may still look at it when this rank has moved on.
  uint64_t prepare_channel(int members) override {
    return segment_->offset_of(segment_->allocate(Channel::bytes_needed(members)));
  }
  std::unique_ptr<Channel> open_channel(std::span<const int> members, uint64_t place) override {
    return std::make_unique<Channel>(*segment_, members, segment_->at(place), traffic_);
  }

  std::optional<uint64_t> place_of(std::span<const std::byte> data) const override {
    if (!segment_->contains(data.data(), data.size())) return {};
    return segment_->offset_of(data.data());
  }
  std::byte* at_place(uint64_t place, size_t bytes) const override {
    return segment_->contains(place, bytes) ? segment_->at(place) : nullptr;
  }
  void map_place(uint64_t place, std::span<std::byte> address, bool shared) const override {
    require(segment_->contains(place, address.size()), ErrorKind::internal,
            "[comm shm] place {} is outside the memory that ranks share", place);
    segment_->map_at(place, address, shared);
  }

  void set_phase(std::string_view phase) override {
    Card& card = segment_->card(rank_);
    write_words(phase.substr(0, kPhaseBytes), card.phase);
    card.give_sign_of_life();
  }

  PeerStatus status(int peer) override {
    const Card& card = segment_->card(peer);
    return {.host = hosts_[peer],
            .process = card.process,
            .silent_seconds = card.silent_seconds(),
            .phase = up_to_zero(read_words(card.phase)),
            .left = card.left != 0 || (!is_vital_(peer) && segment_->is_dead(peer)),
            .vitals = read_words(card.vitals)};
  }

  void abort(ErrorKind kind, std::string_view cause) noexcept override {
    segment_->record_failure(kind, cause);
  }

  void check() override {
    if (!segment_->failed()) {
      for (int peer = 0; peer < size(); ++peer)
        if (is_vital_(peer) && segment_->is_dead(peer))
          abort(ErrorKind::communication, "[comm] " + death_notice(peer));
    }
    segment_->throw_if_failed();
  }

 private:
  std::function<bool(int rank)> is_vital_;  // see GroupOptions
  std::shared_ptr<Segment> segment_;
  Mailbox mailbox_;
  Heartbeat heartbeat_;
};

}  // namespace
}  // namespace artel::comm::shm

namespace artel::comm {

std::unique_ptr<Transport> make_shm_transport(const GroupOptions& options) {
  return std::make_unique<shm::ShmTransport>(
      shm::SegmentOptions{.name = options.address,
                          .token = options.token,
                          .rank = options.rank,
                          .size = options.size,
                          .arena_bytes = options.arena_bytes,
                          .deadline = Deadline::after(options.join_timeout),
                          .meanwhile = options.while_joining},
      options.servers, [options](int rank) { return options.is_vital(rank, options.size); },
      options.vitals);
}

}  // namespace artel::comm
