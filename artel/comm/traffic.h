// Counters of the bytes and messages that a rank exchanges with each of its peers.
//
// A transport counts the bytes that it hands to the wire or to shared memory: the payload and its
// own framing (24 bytes per message and notice with tcp, 16 with shared memory). Gloo and mpi count
// the payload handed to the library. Encryption, TCP, and IP add to that. Heartbeats and the native
// collectives of a library are not counted.
//
//   if (artel::comm::Group* group = cluster.group())
//     artel::println("sent {} bytes so far", group->traffic().sent_bytes);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace artel::comm {

struct Traffic {
  int64_t sent_bytes = 0, received_bytes = 0;
  int64_t sent_messages = 0, received_messages = 0;

  Traffic& operator+=(const Traffic& other) {
    sent_bytes += other.sent_bytes;
    received_bytes += other.received_bytes;
    sent_messages += other.sent_messages;
    received_messages += other.received_messages;
    return *this;
  }
  Traffic& operator-=(const Traffic& other) {
    return *this += {-other.sent_bytes, -other.received_bytes, -other.sent_messages,
                     -other.received_messages};
  }
  bool operator==(const Traffic&) const = default;
};

// The counters of one peer. Thread safe.
class PeerMeter {
 public:
  void count_sent(size_t bytes, int messages = 0) {
    sent_bytes_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    sent_messages_.fetch_add(messages, std::memory_order_relaxed);
  }
  void count_received(size_t bytes, int messages = 0) {
    received_bytes_.fetch_add(static_cast<int64_t>(bytes), std::memory_order_relaxed);
    received_messages_.fetch_add(messages, std::memory_order_relaxed);
  }
  Traffic read() const {
    return {sent_bytes_.load(std::memory_order_relaxed),
            received_bytes_.load(std::memory_order_relaxed),
            sent_messages_.load(std::memory_order_relaxed),
            received_messages_.load(std::memory_order_relaxed)};
  }

 private:
  std::atomic<int64_t> sent_bytes_{0}, received_bytes_{0}, sent_messages_{0}, received_messages_{0};
};

// The counters of all peers of a transport, by rank.
class TrafficMeter {
 public:
  // Call before the first message.
  void resize(int ranks) { peers_ = std::make_unique<PeerMeter[]>(static_cast<size_t>(ranks)); }
  PeerMeter& operator[](int rank) const { return peers_[static_cast<size_t>(rank)]; }

 private:
  std::unique_ptr<PeerMeter[]> peers_;
};

}  // namespace artel::comm
