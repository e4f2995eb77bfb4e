// The messages between workers and servers: a header of fixed size, then keys, then values.
//
// A request names a range of keys, or a list of keys inside a range. Each request gets one reply,
// in the order of requests. Messages come from other processes and are not trusted: a header is
// checked before anything is allocated for what it announces.
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
  setup,     // from worker 0: what there is to serve, as text
  assign,    // set values, or a state of the update rule
  push,      // a contribution
  pull,      // send values, or a state of the update rule
  exchange,  // push, then pull of the same keys
  report,    // send what the server has seen, as text
  shares,    // send how many lanes each worker is to have from `iteration` on, as text; `scale` is
             // the seconds that the worker needs for one
  freeze,    // hold back contributions beyond a cut (ps/cut.h), and send it as text when all
             // contributions before it have been applied
  thaw,      // lift the cut
  leave,     // the worker needs nothing more
  change,    // between servers: what to do to the copy of a range (ps/backup.h)
  // Replies.
  done,
  values,
  text,
  refusal,  // why, as text
};

std::string_view to_string(Kind kind);

// What a header's `flags` may say.
enum Flag : uint32_t {
  in_place = 1,    // the value bytes are places in memory that both sides reach (Group::at_place)
  masked = 2,      // values of some keys only, marked by one bit per key, lowest bit first
  coded = 4,       // values are encoded by the setup's codec
  finishes = 8,    // the worker's iteration ends with this push
  after_all = 16,  // reply when all workers have finished `iteration`
  remember = 32,   // keep the list of keys: later requests send only its signature
  to_state = 64,   // add to the first state of the update rule, not to the values
  stop = 128,      // the worker wants to stop; in a reply: some worker wants to
  afresh = 256,    // of a pull: the worker has forgotten what it knew of these keys
  held = 512,      // of a push: keep the whole sum back and answer with its Squares, as text; of a
                   // pull: first apply what is kept back of exactly these keys, times `scale`
  rests = 1024,    // of a report: the worker will finish no more iterations
};

struct Header {
  static constexpr uint32_t kMagic = 0x50414c31;

  uint32_t magic = kMagic;
  Kind kind = Kind::done;
  uint32_t request = 0;  // a reply repeats that of its request
  uint32_t flags = 0;
  uint64_t received = 0;  // replies that the worker has received from this server
  int64_t iteration = 0;
  uint64_t version = 0;  // updates that the server had made to the values; in a push: to those it
                         // was computed from
  KeyRange keys;
  uint64_t signature = 0;  // of a list of keys; 0: all keys of the range
  uint64_t listed = 0;     // keys that follow
  uint64_t value_bytes = 0;
  int32_t first_lane = 0, last_lane = 0;  // of a contribution
  int32_t partials = 1;                   // sums that a contribution consists of
  int32_t state = -1;                     // pull, assign: a state of the update rule; -1: values
  float learning_rate = 0;
  float scale = 1;  // of the gradient

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

// The size limit of valid messages.
constexpr uint64_t kMostKeys = uint64_t{1} << 32;
constexpr uint64_t kMostValueBytes = uint64_t{1} << 36;

// Throws an Error of kind corrupt for anything a correct peer would not send.
void check_header(const Header& header);
// A whole message from bytes: header, keys, values. Throws like check_header, or if the lengths
// disagree.
Message parse_message(std::span<const std::byte> bytes);

// A number that identifies a list of keys; never 0.
uint64_t signature_of(std::span<const uint64_t> keys);

// Between worker 0 and each server: where the ranges are (Server::run). Between servers: a range as
// a whole.
constexpr uint32_t kPlaceTag = 1, kPlacedTag = 2;
// Of one range: between workers and the server that answers for it, and between that one and the
// server with the copy.
constexpr uint32_t range_tag(int range, uint32_t purpose) {
  return 8 + 8 * static_cast<uint32_t>(range) + purpose;
}
constexpr uint32_t request_tag(int range) { return range_tag(range, 0); }
constexpr uint32_t reply_tag(int range) { return range_tag(range, 1); }
constexpr uint32_t change_tag(int range) { return range_tag(range, 2); }
constexpr uint32_t changed_tag(int range) { return range_tag(range, 3); }
constexpr uint32_t copy_tag(int range) { return range_tag(range, 4); }

// Sends messages without waiting. Keeps headers and owned values until the peer is known to have
// them.
class Outbox {
 public:
  Outbox(std::shared_ptr<comm::Group> group, int peer, uint32_t tag)
      : group_(std::move(group)), peer_(peer), tag_(tag) {}

  // `keys` and `values` are borrowed until the peer has them.
  void send(const Header& header, std::span<const uint64_t> keys,
            std::span<const std::byte> values);
  // Takes ownership of the values.
  void send(const Header& header, std::span<const uint64_t> keys, std::vector<std::byte> values);
  void send(const Header& header, std::vector<std::byte> values) {
    send(header, {}, std::move(values));
  }
  // The peer has answered or acknowledged the first `count` messages.
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
  std::deque<Item> items_;  // what the peer may not have yet
  uint64_t forgotten_ = 0;
};

// The next message of a peer. `patient`: it may take arbitrarily long.
Message receive_message(comm::Group& group, int peer, uint32_t tag, bool patient);

}  // namespace artel::ps
