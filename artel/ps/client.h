// A worker's side of the parameter servers.
//
// Requests are sent immediately; `wait` returns when their answers have arrived. Each request goes
// to the servers that have its keys, in as few messages as possible. Answers arrive in the order of
// requests and are delivered on the waiting thread. On one machine, dense values are not copied:
// servers read gradients and workers read values in place.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/comm/codecs/codec.h"
#include "artel/comm/group.h"
#include "artel/ps/cut.h"
#include "artel/ps/filters/key_cache.h"
#include "artel/ps/key_ranges.h"
#include "artel/ps/messages.h"
#include "artel/ps/placement.h"
#include "artel/ps/report.h"
#include "artel/ps/setup.h"

namespace artel::ps {

// Receives values from one server, for the keys `offset`, `offset` + 1, ... of the request. If
// `change` is true, add them to the worker's values.
using Sink = std::function<void(size_t offset, std::span<const float> values, bool change)>;

struct Request {
  Kind kind = Kind::exchange;
  uint32_t flags = 0;  // of Flag; the client adds in_place and remember where they help
  int64_t iteration = 0;
  KeyRange keys;
  // A subset of the keys, ascending; empty selects all. Borrowed until the answer arrives.
  std::optional<std::span<const uint64_t>> list = {};
  std::vector<const float*> values = {};
  std::span<const uint8_t> keep = {};  // masked: nonzero for keys to send
  std::span<float> lost = {};          // coded: receives the codec's error
  comm::LaneRange lanes = {0, 1};
  int state = -1;
  float learning_rate = 0;
  float scale = 1;
  Sink sink = {};
  std::function<void(std::string_view)> text_sink = {};  // for requests answered with text
};

// Thread safe, except that only one thread may wait at a time.
class Client {
 public:
  // Created for a membership. The ranks from `workers` on are the servers, one per range of the map
  // unless `set_places` says otherwise.
  Client(std::shared_ptr<comm::Group> group, int workers, ShardMap map, uint64_t seed = 0);

  int worker() const { return group_->rank(); }
  const ShardMap& map() const { return map_; }

  // Queries the servers' holdings and assigns the ranges to them. Worker 0 calls it once, before
  // anything else; the other workers call `set_places`. Throws if a range of a running training is
  // lost.
  std::vector<Placement> place(int replicas);
  void set_places(const std::vector<Placement>& places);
  // Sets the number of updates that the worker's values include.
  void set_version(uint64_t version);
  // True if these values of an answer remain unchanged until this worker's next synchronous push.
  bool stays(std::span<const float> values) const {
    return group_->place_of(std::as_bytes(values)).has_value();
  }

  // Sends the setup to the servers and fills in its keys. Worker 0 calls it before any request. All
  // clients must set the same codec.
  void set_up(const Setup& setup);
  void set_codec(const std::string& name);

  using Ticket = std::vector<uint64_t>;  // by server: number of answers to wait for
  Ticket start(const Request& request);
  // Throws the refusal of a server, or the error that broke the group.
  void wait(const Ticket& ticket);
  void run(const Request& request) { wait(start(request)); }
  // The number of lanes per worker from an iteration on, identical for all workers. `seconds` is
  // this worker's time per lane.
  std::vector<int> shares(int64_t iteration, double seconds);
  // Requests the combined report of all servers. `report` must live until the ticket has been
  // waited for.
  Ticket start_report(Report& report);
  Report report();
  // Makes all servers hold back contributions beyond one cut (ps/cut.h), and waits until they have
  // applied all contributions before it. Values and states do not change until `thaw`. Only worker
  // 0 may call it.
  Frozen freeze();
  void thaw();
  // Announces the end. No request may follow.
  void leave();

  // True if the servers have reported that a worker wants to stop.
  bool stopping() const {
    const MutexLock lock(mutex_);
    return stopping_;
  }

  struct Traffic {
    int64_t sent_bytes = 0, received_bytes = 0;
    double waited_seconds = 0;
  };
  Traffic traffic() const;

 private:
  struct Expected {
    size_t offset = 0, count = 0;
    Sink sink = {};
    std::function<void(std::string_view)> text_sink = {};
    bool patient = false;  // without a deadline
  };
  struct Connection {
    Connection(const std::shared_ptr<comm::Group>& group, int rank, int range)
        : rank(rank), range(range), outbox(group, rank, request_tag(range)) {}
    int rank, range;
    Outbox outbox;
    SentLists lists;
    std::deque<Expected> expected;
    uint64_t requests = 0, answers = 0;
    uint64_t version = 0;
  };

  // Sends each server a text; `sink` receives their answers.
  Ticket start_texts(Kind kind, const std::function<std::string(int server)>& text,
                     const std::function<void(std::string_view)>& sink);
  uint64_t send(Connection& connection, const Request& request, const KeyRange& keys, size_t offset,
                std::span<const uint64_t> list) ARTEL_REQUIRES(mutex_);
  void send_values(Connection& connection, Header header, const Request& request, size_t offset,
                   size_t count, std::span<const uint64_t> list) ARTEL_REQUIRES(mutex_);
  void receive(Connection& connection);
  void hand_out(Connection& connection, const Message& message, const Expected& expected);

  std::shared_ptr<comm::Group> group_;
  int workers_;
  bool placed_ = false;
  ShardMap map_;
  uint64_t seed_;
  bool shares_memory_;
  std::unique_ptr<comm::Codec> codec_;
  mutable Mutex mutex_;                                   // protects what follows
  std::vector<std::unique_ptr<Connection>> connections_;  // as many as at first
  Traffic traffic_ ARTEL_GUARDED_BY(mutex_);
  bool stopping_ ARTEL_GUARDED_BY(mutex_) = false;
};

}  // namespace artel::ps
