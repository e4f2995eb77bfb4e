#include "artel/comm/executor.h"

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <vector>

namespace artel::comm {
namespace {

// One segment of a hop.
struct Message {
  const Hop* hop;
  size_t segment;
  size_t offset;
  size_t bytes;
  size_t after;  // how many messages of the other direction must be finished first
};

class Messages {
 public:
  Messages(const Schedule& schedule, const Chunks& chunks, size_t segment_bytes)
      : balanced(is_balanced(schedule, chunks)), segment_bytes_(segment_bytes) {
    for (const Hop& hop : schedule.hops) {
      const bool send = hop.direction == Direction::send;
      const auto offsets = send ? chunks.source_offsets : chunks.target_offsets;
      cut(hop, offsets[hop.first_chunk], offsets[hop.last_chunk], send ? sends : receives);
    }
    // By segment inside a round, so messages from several peers alternate.
    const auto earlier = [](const Message& a, const Message& b) {
      return std::pair(a.hop->round, a.segment) < std::pair(b.hop->round, b.segment);
    };
    std::stable_sort(sends.begin(), sends.end(), earlier);
    std::stable_sort(receives.begin(), receives.end(), earlier);
    if (chunks.source != chunks.target) return;  // nothing is both sent and received
    order(sends, receives, [](int send, int receive) { return receive < send; });
    order(receives, sends, [](int receive, int send) { return send <= receive; });
  }

  std::vector<Message> sends;
  std::vector<Message> receives;
  bool balanced;

 private:
  // True if this rank exchanges one message for another of the same length in every round, as in a
  // ring. It may then hold back a send until it has received about as much, without deadlock.
  // Proof: take the first unsent message of all ranks in the order of rounds and segments. All
  // messages before it arrive, so its sender has received as much as it has sent.
  static bool is_balanced(const Schedule& schedule, const Chunks& chunks) {
    struct Round {
      size_t sends = 0;
      size_t receives = 0;
      int64_t given = 0;
    };
    std::map<int, Round> rounds;
    for (const Hop& hop : schedule.hops) {
      const bool send = hop.direction == Direction::send;
      const auto offsets = send ? chunks.source_offsets : chunks.target_offsets;
      const auto bytes = static_cast<int64_t>(offsets[hop.last_chunk] - offsets[hop.first_chunk]);
      Round& round = rounds[hop.round];
      ++(send ? round.sends : round.receives);
      round.given += send ? bytes : -bytes;
    }
    int64_t given = 0;
    return std::all_of(rounds.begin(), rounds.end(), [&](const auto& entry) {
      const Round& round = entry.second;
      given += round.given;
      return round.sends == 1 && round.receives == 1 &&
             std::abs(given) < static_cast<int64_t>(kSendAhead / 2);
    });
  }

  void cut(const Hop& hop, size_t begin, size_t end, std::vector<Message>& messages) const {
    // An empty chunk is still a message: the other side expects it.
    size_t segment = 0;
    do {
      const size_t bytes = std::min(segment_bytes_, end - begin);
      messages.push_back({&hop, segment++, begin, bytes, 0});
      begin += bytes;
    } while (begin < end);
  }

  // For each message: the last one in `others` that touches the same bytes and comes first. Ranges
  // that end in different rounds are compared by the whole round, which `others` is sorted by.
  template <typename Before>
  static void order(std::vector<Message>& messages, const std::vector<Message>& others,
                    Before before) {
    // Newest first: the first overlap found is the last to be finished.
    for (Message& message : messages) {
      const auto end = std::partition_point(
          others.begin(), others.end(),
          [&](const Message& other) { return before(message.hop->round, other.hop->round); });
      for (auto other = end; other != others.begin();) {
        --other;
        const bool overlap = other->offset < message.offset + message.bytes &&
                             message.offset < other->offset + other->bytes;
        if (!overlap) continue;
        message.after = other - others.begin() + 1;
        break;
      }
    }
  }

  size_t segment_bytes_;
};

class Execution {
 public:
  Execution(const Messages& messages, const Chunks& chunks, const Route& route, Patience& patience,
            ElementType type, const Reduction& reduction, size_t segment_bytes)
      : messages_(messages),
        chunks_(chunks),
        route_(route),
        patience_(patience),
        type_(type),
        reduction_(reduction),
        segment_bytes_(segment_bytes),
        window_(std::clamp<size_t>(messages.receives.size(), 1, kReceiveWindow / segment_bytes)) {
    const bool adds = std::any_of(messages.receives.begin(), messages.receives.end(),
                                  [](const Message& m) { return m.hop->effect == Effect::add; });
    if (adds) scratch_ = std::make_unique_for_overwrite<std::byte[]>(window_ * segment_bytes);
  }

  void run() {
    while (applied_ < messages_.receives.size() || sent_ < messages_.sends.size()) {
      post_receives();
      post_sends();
      if (!receiving_.empty())
        apply_next();
      else if (!sending_.empty())
        finish_send();
    }
    while (!sending_.empty()) finish_send();
  }

 private:
  std::byte* landing(size_t index) {
    const Message& message = messages_.receives[index];
    return message.hop->effect == Effect::add ? scratch_.get() + index % window_ * segment_bytes_
                                              : chunks_.target + message.offset;
  }

  void post_receives() {
    while (applied_ + receiving_.size() < messages_.receives.size() &&
           receiving_.size() < window_) {
      const size_t index = applied_ + receiving_.size();
      const Message& message = messages_.receives[index];
      // A replacement of bytes that this rank has sent contains them, so it cannot arrive before
      // they have arrived elsewhere. It is enough that the send is in flight.
      if (message.hop->effect == Effect::replace && message.after > sent_) return;
      receiving_.push_back(
          route_.receive(patience_, message.hop->peer, {landing(index), message.bytes}));
    }
  }

  void post_sends() {
    while (sent_ < messages_.sends.size() && messages_.sends[sent_].after <= applied_) {
      if (messages_.balanced && bytes_sent_ >= bytes_applied_ + kSendAhead) return;
      const Message& message = messages_.sends[sent_];
      bytes_sent_ += message.bytes;
      sending_.push_back(route_.send(patience_, message.hop->peer,
                                     {chunks_.source + message.offset, message.bytes}));
      ++sent_;
    }
  }

  void apply_next() {
    const Message& message = messages_.receives[applied_];
    patience_.wait_for(route_.members[message.hop->peer], *receiving_.front());
    if (message.hop->effect == Effect::add) {
      while (message.after > finished_) finish_send();
      accumulate(reduction_, type_, chunks_.target + message.offset, landing(applied_),
                 message.bytes / size_of(type_));
    }
    receiving_.pop_front();
    ++applied_;
    bytes_applied_ += message.bytes;
  }

  void finish_send() {
    patience_.wait_for(route_.members[messages_.sends[finished_].hop->peer], *sending_.front());
    sending_.pop_front();
    ++finished_;
  }

  const Messages& messages_;
  const Chunks& chunks_;
  const Route& route_;
  Patience& patience_;
  ElementType type_;
  const Reduction& reduction_;
  size_t segment_bytes_;
  size_t window_;  // receives
  std::unique_ptr<std::byte[]> scratch_;
  std::deque<std::unique_ptr<Transfer>> receiving_;
  std::deque<std::unique_ptr<Transfer>> sending_;
  size_t applied_ = 0;   // receives
  size_t sent_ = 0;      // sends that were posted
  size_t finished_ = 0;  // sends that have left
  size_t bytes_sent_ = 0;
  size_t bytes_applied_ = 0;
};

}  // namespace

void execute(const Schedule& schedule, const Chunks& chunks, const Route& route, Patience& patience,
             ElementType type, const Reduction& reduction) {
  const size_t segment_bytes = patience.transport().segment_bytes();
  const Messages messages(schedule, chunks, segment_bytes);
  Execution(messages, chunks, route, patience, type, reduction, segment_bytes).run();
}

}  // namespace artel::comm
