// A worker's side of the parameter servers.
//
// Requests are sent at once and answered later: `wait` returns when a request's answers are there.
// Each goes to the servers that have its keys, as few messages as possible. Answers come in the
// order of requests and are handed out by whoever waits, on its thread. On one machine dense values
// are not copied: servers read gradients and workers read values where they are.
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
#include "artel/ps/filters/key_cache.h"
#include "artel/ps/key_ranges.h"
#include "artel/ps/messages.h"
#include "artel/ps/report.h"
#include "artel/ps/setup.h"

namespace artel::ps {

// Gets values from one server: those of the keys `offset`, `offset` + 1, ... of the request. If
// `change`, they are to be added to what the worker has.
using Sink = std::function<void(size_t offset, std::span<const float> values, bool change)>;

struct Request {
  Kind kind = Kind::exchange;
  uint32_t flags = 0;  // of Flag; in_place and remember are added by the client where they help
  int64_t iteration = 0;
  KeyRange keys;
  // Some of the keys, ascending; nothing: all of them. Borrowed until the answer is there.
  std::optional<std::span<const uint64_t>> list = {};
  std::vector<const float*> values = {};
  std::span<const uint8_t> keep = {};  // masked: which keys to send
  std::span<float> lost = {};          // coded: gets what the codec lost
  comm::LaneRange lanes = {0, 1};
  int state = -1;
  float learning_rate = 0;
  float scale = 1;
  Sink sink = {};
  std::function<void(std::string_view)> text_sink = {};  // of requests that are answered by text
};

// Calls may come from several threads, except that one at a time waits.
class Client {
 public:
  // The ranks from `workers` on are the servers, as many as the map has. The group is borrowed.
  Client(comm::Group& group, int workers, ShardMap map, uint64_t seed = 0);

  int worker() const { return group_.rank(); }
  const ShardMap& map() const { return map_; }

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
  // `seconds` is what this worker needs for one lane.
  std::vector<int> shares(int64_t iteration, double seconds);
  // What the servers have seen, all together; `report` must live until the ticket was waited for.
  Ticket start_report(Report& report);
  Report report();
  // Says good-bye: nothing may be asked afterwards.
  void leave();

  // Whether some worker wants to stop, as far as the servers said.
  bool stopping() const { return stopping_; }

  struct Traffic {
    int64_t sent_bytes = 0, received_bytes = 0;
    double waited_seconds = 0;
  };
  Traffic traffic() const;

 private:
  struct Expected {
    size_t offset = 0, count = 0;
    Sink sink;
    std::function<void(std::string_view)> text_sink;
  };
  struct Connection {
    Connection(comm::Group& group, int rank) : rank(rank), outbox(group, rank, kRequestTag) {}
    int rank;
    Outbox outbox;
    SentLists lists;
    std::deque<Expected> expected;
    uint64_t requests = 0, answers = 0;
    uint64_t version = 0;
  };

  uint64_t send(Connection& connection, const Request& request, const KeyRange& keys, size_t offset,
                std::span<const uint64_t> list);
  void send_values(Connection& connection, Header header, const Request& request, size_t offset,
                   size_t count, std::span<const uint64_t> list);
  void receive(Connection& connection);
  void hand_out(Connection& connection, const Message& message, const Expected& expected);

  comm::Group& group_;
  ShardMap map_;
  uint64_t seed_;
  bool shares_memory_;
  std::unique_ptr<comm::Codec> codec_;
  mutable std::mutex mutex_;  // of what follows
  std::vector<std::unique_ptr<Connection>> connections_;
  Traffic traffic_;
  bool stopping_ = false;
};

}  // namespace artel::ps
