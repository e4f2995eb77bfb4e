// Messages between workers and servers: a header of fixed size, then keys, then values.
//
// A request names a range of keys, or a list of keys inside a range. Each request gets one reply,
// in the order of requests. Messages are untrusted: a header is checked before any memory is
// allocated for its content.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/comm/group.h"
#include "artel/ps/key_ranges.h"

namespace artel::ps {

enum class Kind : uint32_t {
  // Requests.
  setup,     // from worker 0: a Setup as text
  assign,    // sets values or a state of the update rule
  push,      // a contribution
  pull,      // requests values or a state of the update rule
  exchange,  // a push followed by a pull of the same keys
  report,    // requests a Report as text
  shares,    // requests the lanes of each worker from `iteration` on, as text; `scale` is the
             // worker's time per lane in seconds
  freeze,    // holds back contributions beyond a cut (ps/cut.h); answered with the cut, as text,
             // when all contributions before it have been applied
  thaw,      // lifts the cut
  leave,     // the worker sends no more requests
  change,    // between servers: a Change for the backup (ps/backup.h)
  // Replies.
  done,
  values,
  text,
  refusal,  // the reason as text
};

std::string_view to_string(Kind kind);

// Bits of a header's `flags`.
enum Flag : uint32_t {
  in_place = 1,      // the value bytes are places in memory that both sides reach (Group::at_place)
  masked = 2,        // values of some keys only, marked by one bit per key, lowest bit first
  coded = 4,         // values are encoded by the setup's codec
  finishes = 8,      // the worker's iteration ends with this push
  after_all = 16,    // reply when all workers have finished `iteration`
  remember = 32,     // caches the key list; later requests send only its signature
  to_state = 64,     // adds to the first state of the update rule instead of the values
  stop = 128,        // the worker wants to stop; in a reply, some worker wants to stop
  afresh = 256,      // pull: the worker has lost its values of these keys
  held = 512,        // push: hold back the whole sum and answer with its Squares, as text;
                     // pull: first apply the held sum of exactly these keys, times `scale`
  rests = 1024,      // report: the worker will finish no more iterations
  same_list = 2048,  // push: all workers push the same listed keys, and nothing else of the range
                     // changes; the sum has the bits of a push of all keys
};

struct Header {
  static constexpr uint32_t kMagic = 0x50414c31;

  uint32_t magic = kMagic;
  Kind kind = Kind::done;
  uint32_t request = 0;  // request number, repeated in the reply
  uint32_t flags = 0;
  uint64_t received = 0;  // number of replies that the worker has received from this server
  int64_t iteration = 0;
  uint64_t version = 0;  // updates of the values; in a push, of those it was computed from
  KeyRange keys;
  uint64_t signature = 0;  // of a key list; 0 for the whole range
  uint64_t listed = 0;     // number of keys after the header
  uint64_t value_bytes = 0;
  int32_t first_lane = 0, last_lane = 0;  // lanes of a contribution
  int32_t partials = 1;                   // number of partial sums of a contribution
  int32_t state = -1;                     // pull, assign: state of the update rule; -1 for values
  float learning_rate = 0;
  float scale = 1;  // factor of the gradient

  bool has(Flag flag) const { return (flags & flag) != 0; }
};

struct Message {
  Header header;
  std::vector<uint64_t> keys;
  std::vector<std::byte> values;

  std::string_view value_text() const {
    return {reinterpret_cast<const char*>(values.data()), values.size()};
  }
};

// Size limits of valid messages.
constexpr uint64_t kMostKeys = uint64_t{1} << 32;
constexpr uint64_t kMostValueBytes = uint64_t{1} << 36;

// Throws an Error of kind corrupt for anything a correct peer would not send.
void check_header(const Header& header);
// Parses header, keys, and values. Throws like check_header, or if the lengths disagree.
Message parse_message(std::span<const std::byte> bytes);

// A hash that identifies a key list; never 0.
uint64_t signature_of(std::span<const uint64_t> keys);

// Tags between worker 0 and each server for the placement of ranges (Server::run), and between
// servers for whole ranges.
constexpr uint32_t kPlaceTag = 1, kPlacedTag = 2;
// Tags of one range: between workers and its primary server, and between primary and backup.
constexpr uint32_t range_tag(int range, uint32_t purpose) {
  return 8 + 8 * static_cast<uint32_t>(range) + purpose;
}
constexpr uint32_t request_tag(int range) { return range_tag(range, 0); }
constexpr uint32_t reply_tag(int range) { return range_tag(range, 1); }
constexpr uint32_t change_tag(int range) { return range_tag(range, 2); }
constexpr uint32_t changed_tag(int range) { return range_tag(range, 3); }
constexpr uint32_t copy_tag(int range) { return range_tag(range, 4); }

// Sends messages asynchronously. Keeps headers and owned values until the peer has acknowledged
// them.
class Outbox {
 public:
  Outbox(std::shared_ptr<comm::Group> group, int peer, uint32_t tag)
      : group_(std::move(group)), peer_(peer), tag_(tag) {}

  // Borrows `keys` and `values` until the peer has them.
  void send(const Header& header, std::span<const uint64_t> keys,
            std::span<const std::byte> values);
  // Takes ownership of the values.
  void send(const Header& header, std::span<const uint64_t> keys, std::vector<std::byte> values);
  void send(const Header& header, std::vector<std::byte> values) {
    send(header, {}, std::move(values));
  }
  // Releases the first `count` messages, which the peer has answered or acknowledged.
  void forget(uint64_t count);

 private:
  struct Item {
    Header header;
    std::vector<std::byte> owned;
    std::vector<comm::Handle> handles;
  };
  void start(Item& item, std::span<const uint64_t> keys, std::span<const std::byte> values);

  std::shared_ptr<comm::Group> group_;
  int peer_;
  uint32_t tag_;
  std::deque<Item> items_;  // unacknowledged messages
  uint64_t forgotten_ = 0;
};

// Receives the next message of a peer. `patient` waits without a deadline.
Message receive_message(comm::Group& group, int peer, uint32_t tag, bool patient);

}  // namespace artel::ps
