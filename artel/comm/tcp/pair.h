// The connection to one other rank, by which messages travel in both directions.
//
// A rank that is ready to receive sends a notice. Only then is the message sent, straight into its
// place, so no unexpected message needs memory. Each notice, and the head of each message, is 24
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>

#include "artel/base/mutex.h"
#include "artel/comm/connection/stream.h"
#include "artel/comm/traffic.h"

namespace artel::comm::tcp {

// A message on its way. It stays at its place until it is done or withdrawn.
struct Message {
  uint64_t tag = 0;
  std::span<std::byte> data;  // of one that is sent, only read
  bool sends = false;
  bool done = false;  // protected by the pair
};

// Thread safe. One thread calls `move`; any other may post messages and wait for them.
class Pair {
 public:
  // `received` holds the bytes received so far. `meter` counts payloads, heads, and notices before
  // encryption. It must outlive the pair.
  Pair(Stream stream, std::string received, PeerMeter& meter);

  void post(Message& message);
  // Waits up to about `seconds`. Returns true if the message is finished. Throws
  // Error(communication) if the connection has broken.
  bool wait(Message& message, double seconds);
  // Stops using the message. Breaks the connection if a part of it has been sent.
  void withdraw(Message& message);

  int socket() const { return stream_.socket(); }
  // The poll events that `move` needs.
  short events();
  // Sends and receives without blocking. Returns true if more may be possible at once.
  bool move();
  // Breaks the connection off: all who wait for it get this.
  void give_up(const std::string& why);
  // True if everything sent has arrived, or never will.
  bool is_settled();

 private:
  enum class Kind : uint64_t { ready = 1, data };
  struct Head {
    Kind kind;
    uint64_t tag, bytes;
  };
  struct Place {       // for a message that comes
    Message* message;  // null: withdrawn; incoming bytes are dropped
    size_t bytes;
  };

  bool receive() ARTEL_REQUIRES(mutex_);
  bool send() ARTEL_REQUIRES(mutex_);
  size_t take(std::span<std::byte> into, bool& ended) ARTEL_REQUIRES(mutex_);
  void handle_head() ARTEL_REQUIRES(mutex_);
  void begin_to_send(Message& message, uint64_t expected) ARTEL_REQUIRES(mutex_);
  void stage() ARTEL_REQUIRES(mutex_);
  void finish(Message& message) ARTEL_REQUIRES(mutex_);
  void break_off(const std::string& why) ARTEL_REQUIRES(mutex_);

  Mutex mutex_;  // protects everything
  Condition changed_;
  int waiting_ ARTEL_GUARDED_BY(mutex_) = 0;
  Stream stream_;
  PeerMeter& meter_;
  std::string broken_ ARTEL_GUARDED_BY(mutex_);  // why; empty: it is not

  std::map<uint64_t, std::deque<Message*>> unasked_
      ARTEL_GUARDED_BY(mutex_);  // to send, the other side is not ready yet
  std::map<uint64_t, std::deque<uint64_t>> asked_
      ARTEL_GUARDED_BY(mutex_);                             // bytes the other side is ready for
  std::deque<Head> notices_ ARTEL_GUARDED_BY(mutex_);       // to send
  std::deque<Message*> outgoing_ ARTEL_GUARDED_BY(mutex_);  // the other side is ready for these
  std::string staged_ ARTEL_GUARDED_BY(mutex_);             // heads and small messages, being sent
  size_t staged_sent_ ARTEL_GUARDED_BY(mutex_) = 0;
  Message* current_ ARTEL_GUARDED_BY(mutex_) =
      nullptr;  // being sent: its rest comes after what is staged
  size_t current_sent_ ARTEL_GUARDED_BY(mutex_) = 0;

  std::map<uint64_t, std::deque<Place>> places_ ARTEL_GUARDED_BY(mutex_);
  std::string early_ ARTEL_GUARDED_BY(mutex_);  // received before this pair was made
  Head head_ ARTEL_GUARDED_BY(mutex_){};
  size_t head_received_ ARTEL_GUARDED_BY(mutex_) = 0;
  bool in_message_ ARTEL_GUARDED_BY(mutex_) = false;
  Place place_ ARTEL_GUARDED_BY(mutex_){};
  size_t place_received_ ARTEL_GUARDED_BY(mutex_) = 0;
};

}  // namespace artel::comm::tcp
