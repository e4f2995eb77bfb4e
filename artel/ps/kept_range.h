// A server's state of a range of keys: values, state of the update rule, and a record of the
// applied contributions. It lives for the whole run, across memberships.
//
// The primary server sends each change to the backup. Both apply the same changes in the same order
// with the same code, so they have the same bits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "artel/ps/rules/rule.h"
#include "artel/ps/shard.h"

namespace artel::ps {

// A change to some keys. Sent between servers as raw bytes.
struct Change {
  enum class Kind : uint32_t { assign, update, add_to_state };

  Kind kind = Kind::update;
  int32_t state = -1;   // assign: state of the update rule; -1 for values
  int32_t worker = -1;  // update: number of the worker in the run; -1 for all workers together
  int32_t lanes = 1, own = 1;
  int32_t reserved = 0;
  int64_t iteration = 0;
  KeyRange keys;
  Step step;
  uint64_t pushes = 0;    // pushes so far that completed an iteration of their worker
  int64_t staleness = 0;  // of the last of these pushes
};

class KeptRange {
 public:
  // All values are zero.
  KeptRange(const Setup& setup, const UserRules& rules, const Shard::Allocate& allocate);

  // Changes how contributions are handled. Keys and update rule must not change.
  void adopt(const Setup& setup) { setup_ = setup; }
  const Setup& setup() const { return setup_; }
  Shard& shard() { return *shard_; }

  // Moves values and states to the memory of another group.
  void move_to(const UserRules& rules, const Shard::Allocate& allocate);

  // Number of weight updates. All contributions of a worker to one iteration count as one.
  int64_t updates() const { return updates_; }
  // The update number of a contribution of this worker to this iteration.
  int64_t update_number(int worker, int64_t iteration) const;

  // Applies a change to some of its keys. After all of them, call `note`.
  void make(const Change& change, const KeyRange& part, std::span<const float> values);
  void note(const Change& change, std::string squares);

  // Looks up a contribution of this iteration or a later one to exactly these keys, because a
  // worker repeats unacknowledged contributions. Returns the squares noted with it, or null if it
  // was not applied.
  const std::string* find(int worker, const KeyRange& keys, int64_t iteration) const;

  uint64_t changes() const { return changes_; }
  bool begun() const { return begun_; }
  // The last iteration with an applied contribution.
  int64_t latest() const;

  uint64_t pushes = 0;                        // pushes that completed an iteration of their worker
  std::map<int64_t, int64_t> staleness = {};  // histogram over these pushes

  // Everything except setup, values, and states, as text.
  std::string log_text() const;
  void restore_log(std::string_view text);

 private:
  struct Made {
    int64_t iteration = 0;
    std::string squares;
  };
  struct Updated {
    int64_t iteration = 0, number = 0;
  };
  Setup setup_;
  std::unique_ptr<Shard> shard_;
  uint64_t changes_ = 0;
  bool begun_ = false;
  std::map<std::tuple<int, uint64_t, uint64_t>, Made> made_;  // last by worker and keys
  int64_t updates_ = 0;
  std::map<int, Updated> updated_;  // last update by worker
};

// All ranges that a server holds.
using Holdings = std::map<int, std::shared_ptr<KeptRange>>;

}  // namespace artel::ps
