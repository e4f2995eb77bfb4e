// Tagged messages through the rings of a segment.
//
// A message is a header and its bytes, in order, in the ring of its sender and receiver. Data goes
// straight from the sender's buffer to the ring, and from the ring to the buffer of the receive
// posted for its tag. A message without a posted receive is set aside. Waiting threads make all
// progress, each for all messages of this rank.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/comm/shm/segment.h"
#include "artel/comm/traffic.h"
#include "artel/comm/transports/transport.h"

namespace artel::comm::shm {

class Mailbox {
 public:
  // The segment must outlive the mailbox, and the mailbox its transfers. `names` are the rank
  // numbers for error messages and for `traffic`.
  Mailbox(Segment& segment, std::vector<int> names, const TrafficMeter& traffic);

  std::unique_ptr<Transfer> send(int peer, uint64_t tag, std::span<const std::byte> data);
  std::unique_ptr<Transfer> receive(int peer, uint64_t tag, std::span<std::byte> data);

  // True if messages are expected or in flight.
  bool busy();
  // Makes progress on all messages, then sleeps until there is more to do, `wake` is called, or
  // `seconds` have passed.
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
  void progress() ARTEL_REQUIRES(mutex_);
  bool push(int peer) ARTEL_REQUIRES(mutex_);
  bool pull(int peer) ARTEL_REQUIRES(mutex_);
  void begin_arrival(int peer, uint64_t tag, uint64_t bytes) ARTEL_REQUIRES(mutex_);

  Segment& segment_;
  std::vector<int> names_;
  const TrafficMeter& traffic_;
  Mutex mutex_;
  std::vector<Peer> peers_ ARTEL_GUARDED_BY(mutex_);
};

}  // namespace artel::comm::shm
