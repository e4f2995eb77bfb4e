// Tagged messages through the rings of a segment.
//
// A message is a header and its bytes, in order, in the ring of its sender and receiver. Data goes
// straight from the sender's buffer to the ring and from the ring to the buffer of the receive that
// is posted for its tag; a message that nobody expects yet is set aside. All progress is made by
// waiting threads, each for all messages of this rank, not only its own.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "artel/comm/shm/segment.h"
#include "artel/comm/traffic.h"
#include "artel/comm/transport.h"

namespace artel::comm::shm {

class Mailbox {
 public:
  // The segment must outlive the mailbox, and the mailbox its transfers. `names` are what errors
  // call the ranks of the segment, and the ranks by which `traffic` counts.
  Mailbox(Segment& segment, std::vector<int> names, const TrafficMeter& traffic);

  std::unique_ptr<Transfer> send(int peer, uint64_t tag, std::span<const std::byte> data);
  std::unique_ptr<Transfer> receive(int peer, uint64_t tag, std::span<std::byte> data);

  // Whether messages are expected or on their way.
  bool busy();
  // Makes progress on them, then sleeps until there is more to do, `wake` is called, or `seconds`
  // have passed.
  void attend(double seconds);
  void wake();

 private:
  struct Message;
  class MailTransfer;
  using MessagePointer = std::shared_ptr<Message>;

  struct Peer {
    std::deque<MessagePointer> outgoing;
    std::map<uint64_t, std::deque<MessagePointer>> expected;    // posted receives by tag
    std::map<uint64_t, std::deque<MessagePointer>> unexpected;  // arrived before their receive
    MessagePointer arriving;                                    // the one now in the ring
  };

  bool wait(Message& message, double seconds);
  void give_up(const MessagePointer& message);
  void progress();
  bool push(int peer);
  bool pull(int peer);
  void begin_arrival(int peer, uint64_t tag, uint64_t bytes);

  Segment& segment_;
  std::vector<int> names_;
  const TrafficMeter& traffic_;
  std::mutex mutex_;
  std::vector<Peer> peers_;
};

}  // namespace artel::comm::shm
