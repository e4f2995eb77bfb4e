// A worker's side of the parameter servers.
//
// Requests are sent at once and answered later: `wait` returns when a request's answers have
// arrived. Each request goes to the servers that have its keys, in as few messages as possible.
// Answers come in the order of requests and are delivered on the thread that waits. On one machine
// dense values are not copied: servers read gradients and workers read values in place.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

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

// Receives values from one server: those of the keys `offset`, `offset` + 1, ... of the request. If
// `change`, they are to be added to what the worker has.
using Sink = std::function<void(size_t offset, std::span<const float> values, bool change)>;

struct Request {
  Kind kind = Kind::exchange;
  uint32_t flags = 0;  // of Flag; in_place and remember are added by the client where they help
  int64_t iteration = 0;
  KeyRange keys;
  // Some of the keys, ascending; empty: all of them. Borrowed until the answer arrives.
  std::optional<std::span<const uint64_t>> list = {};
  std::vector<const float*> values = {};
  std::span<const uint8_t> keep = {};  // masked: which keys to send
  std::span<float> lost = {};          // coded: receives what the codec lost
  comm::LaneRange lanes = {0, 1};
  int state = -1;
  float learning_rate = 0;
  float scale = 1;
  Sink sink = {};
  std::function<void(std::string_view)> text_sink = {};  // for requests answered with text
};

// Calls may come from several threads, but only one thread may wait at a time.
class Client {
 public:
  // A client is made for a membership: the ranks from `workers` on are the servers, as many as the
  // map has ranges, unless `set_places` says otherwise.
  Client(std::shared_ptr<comm::Group> group, int workers, ShardMap map, uint64_t seed = 0);

  int worker() const { return group_->rank(); }
  const ShardMap& map() const { return map_; }

  // Asks the servers what they have, and has them agree who keeps which range from now on. Worker 0
  // does so before anything else, once; the other workers `set_places`. Throws if part of a run
  // that has begun is lost.
  std::vector<Placement> place(int replicas);
  void set_places(const std::vector<Placement>& places);
  // The updates that the worker's values contain.
  void set_version(uint64_t version);
  // Whether these values of an answer stay as they are until this worker's next push in step.
  bool stays(std::span<const float> values) const {
    return group_->place_of(std::as_bytes(values)).has_value();
  }

  // Tells the servers what to serve; worker 0 does so before anybody asks for anything. The setup's
  // keys are filled in. All clients set the same codec.
  void set_up(const Setup& setup);
  void set_codec(const std::string& name);

  using Ticket = std::vector<uint64_t>;  // for each server, the answers to wait for
  Ticket start(const Request& request);
  // Throws the refusal of a server, or what broke the group.
  void wait(const Ticket& ticket);
  void run(const Request& request) { wait(start(request)); }
  // How many lanes each worker is to have from an iteration on; all workers get the same answer.
  // `seconds` is the time this worker needs for one lane.
  std::vector<int> shares(int64_t iteration, double seconds);
  // What all servers together have seen; `report` must live until the ticket has been waited for.
  Ticket start_report(Report& report);
  Report report();
  // From worker 0: has all servers hold back contributions beyond one cut (ps/cut.h), and waits
  // until they have applied all before it. Until `thaw`, values and states stay as they are.
  Frozen freeze();
  void thaw();
  // Says goodbye: no request may follow.
  void leave();

  // Whether some worker wants to stop, as far as the servers have said.
  bool stopping() const { return stopping_; }

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
    bool patient = false;  // it may take arbitrarily long
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
                std::span<const uint64_t> list);
  void send_values(Connection& connection, Header header, const Request& request, size_t offset,
                   size_t count, std::span<const uint64_t> list);
  void receive(Connection& connection);
  void hand_out(Connection& connection, const Message& message, const Expected& expected);

  std::shared_ptr<comm::Group> group_;
  int workers_;
  bool placed_ = false;
  ShardMap map_;
  uint64_t seed_;
  bool shares_memory_;
  std::unique_ptr<comm::Codec> codec_;
  mutable std::mutex mutex_;  // protects what follows
  std::vector<std::unique_ptr<Connection>> connections_;
  Traffic traffic_;
  bool stopping_ = false;
};

}  // namespace artel::ps
