#include <array>
#include <condition_variable>
#include <cstring>
#include <functional>
#include <numeric>
#include <thread>

#include "artel/comm/host_name.h"
#include "artel/comm/shm/channel.h"
#include "artel/comm/shm/mailbox.h"
#include "artel/comm/transports.h"

namespace artel::comm::shm {
namespace {

int64_t steady_nanoseconds() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

std::vector<int> all_ranks(int size) {
  std::vector<int> ranks(size);
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

// Calls `beat` twice a second from a thread of its own, so that others can tell a rank that
// computes from one that hangs.
class Heartbeat {
 public:
  template <typename Beat>
  explicit Heartbeat(Beat beat)
      : thread_([this, beat] {
          std::unique_lock lock(mutex_);
          do beat();
          while (
              !stop_.wait_for(lock, std::chrono::milliseconds(500), [this] { return stopped_; }));
        }) {}
  ~Heartbeat() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    stop_.notify_one();
    thread_.join();
  }

 private:
  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopped_ = false;
  std::thread thread_;
};

class ShmTransport : public Transport {
 public:
  ShmTransport(const SegmentOptions& options, int servers, std::function<bool(int)> is_vital)
      : is_vital_(std::move(is_vital)),
        segment_(std::make_shared<Segment>(options)),
        mailbox_(*segment_, all_ranks(options.size)),
        heartbeat_([segment = segment_.get()] {
          segment->card(segment->rank()).last_seen = steady_nanoseconds();
        }) {
    rank_ = options.rank;
    servers_ = servers;
    hosts_.assign(options.size, host_name());
  }

  std::string_view name() const override { return "shm"; }

  std::unique_ptr<Transfer> send(int peer, uint64_t tag, std::span<const std::byte> data) override {
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
    return std::make_unique<Channel>(*segment_, members, segment_->at(place));
  }

  std::optional<uint64_t> place_of(std::span<const std::byte> data) const override {
    if (!segment_->contains(data.data(), data.size())) return {};
    return segment_->offset_of(data.data());
  }
  std::byte* at_place(uint64_t place, size_t bytes) const override {
    return segment_->contains(place, bytes) ? segment_->at(place) : nullptr;
  }

  void set_phase(std::string_view phase) override {
    std::array<uint64_t, 4> words{};
    std::memcpy(words.data(), phase.data(), std::min(phase.size(), sizeof(words) - 1));
    Card& card = segment_->card(rank_);
    for (size_t i = 0; i < words.size(); ++i) card.phase[i] = words[i];
    card.last_seen = steady_nanoseconds();
  }

  PeerStatus status(int peer) override {
    const Card& card = segment_->card(peer);
    std::array<uint64_t, 4> words{};
    for (size_t i = 0; i < words.size(); ++i) words[i] = card.phase[i];
    return {.host = hosts_[peer],
            .process = card.process,
            .silent_seconds = static_cast<double>(steady_nanoseconds() - card.last_seen) * 1e-9,
            .phase = reinterpret_cast<const char*>(words.data()),
            .left = card.left != 0 || (!is_vital_(peer) && segment_->is_dead(peer))};
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
                          .deadline = Deadline::after(options.join_timeout)},
      options.servers, [options](int rank) { return options.is_vital(rank, options.size); });
}

}  // namespace artel::comm
