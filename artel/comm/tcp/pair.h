// The connection to one other rank, by which messages travel in both directions.
//
// A rank that is ready to receive says so; only then is the message sent, straight into its place.
// So nothing arrives that nobody waits for, and no memory is needed for it. Each notice, and the
// head of each message, is 24 bytes.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <span>
#include <string>

#include "artel/comm/stream.h"
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
  // `received`: what has arrived already. `meter` counts payloads, heads and notices before they
  // are encrypted, and outlives the pair.
  Pair(Stream stream, std::string received, PeerMeter& meter);

  void post(Message& message);
  // Waits about so long for the message to be done, and returns whether it is. Throws
  // Error(communication) if the connection has broken.
  bool wait(Message& message, double seconds);
  // After this returns, the message is not used any more. What has begun to be sent breaks the
  // connection.
  void withdraw(Message& message);

  int socket() const { return stream_.socket(); }
  // What `move` waits for, with poll.
  short events();
  // Sends and receives what it can now; returns whether there may be more at once.
  bool move();
  // Breaks the connection off: all who wait for it get this.
  void give_up(const std::string& why);
  // Whether all that was sent has arrived, or never will.
  bool is_settled();

 private:
  enum class Kind : uint64_t { ready = 1, data };
  struct Head {
    Kind kind;
    uint64_t tag, bytes;
  };
  struct Place {       // for a message that comes
    Message* message;  // null: it was withdrawn, and what comes is dropped
    size_t bytes;
  };

  bool receive();
  bool send();
  size_t take(std::span<std::byte> into, bool& ended);
  void handle_head();
  void begin_to_send(Message& message, uint64_t expected);
  void stage();
  void finish(Message& message);
  void break_off(const std::string& why);

  std::mutex mutex_;  // protects everything
  std::condition_variable changed_;
  int waiting_ = 0;
  Stream stream_;
  PeerMeter& meter_;
  std::string broken_;  // why; empty: it is not

  std::map<uint64_t, std::deque<Message*>> unasked_;  // to send, the other side is not ready yet
  std::map<uint64_t, std::deque<uint64_t>> asked_;    // bytes the other side is ready for
  std::deque<Head> notices_;                          // to send
  std::deque<Message*> outgoing_;                     // the other side is ready for these
  std::string staged_;                                // heads and small messages, being sent
  size_t staged_sent_ = 0;
  Message* current_ = nullptr;  // being sent: its rest comes after what is staged
  size_t current_sent_ = 0;

  std::map<uint64_t, std::deque<Place>> places_;
  std::string early_;  // received before this pair was made
  Head head_{};
  size_t head_received_ = 0;
  bool in_message_ = false;
  Place place_{};
  size_t place_received_ = 0;
};

}  // namespace artel::comm::tcp
