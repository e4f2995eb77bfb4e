// A range of keys as a server keeps it, from the beginning of a run to its end: the values, the
// state of the update rule, and which contributions are in them. Memberships come and go meanwhile.
//
// Whoever answers for a range tells the server that keeps a copy of each change; both make the same
// changes in the same order with the same code, so they have the same bits.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "artel/ps/rules/rule.h"
#include "artel/ps/shard.h"

namespace artel::ps {

// What happens to some keys; sent as it is.
struct Change {
  enum class Kind : uint32_t { assign, update, add_to_state };

  Kind kind = Kind::update;
  int32_t state = -1;   // assign: of the update rule; -1: values
  int32_t worker = -1;  // update: its number in the run; -1: all workers together
  int32_t lanes = 1, own = 1;
  int32_t reserved = 0;
  int64_t iteration = 0;
  KeyRange keys;
  Step step;
  uint64_t pushes = 0;    // that ended an iteration of their worker, up to here
  int64_t staleness = 0;  // of the last of them
};

class KeptRange {
 public:
  // All values are zero.
  KeptRange(const Setup& setup, const UserRules& rules, const Shard::Allocate& allocate);

  // How contributions are taken from now on; keys and update rule stay.
  void adopt(const Setup& setup) { setup_ = setup; }
  const Setup& setup() const { return setup_; }
  Shard& shard() { return *shard_; }

  // Moves values and states to memory of another group.
  void move_to(const UserRules& rules, const Shard::Allocate& allocate);

  // Updates that its weights have had. All contributions of a worker to one iteration make one.
  int64_t updates() const { return updates_; }
  // The number of the update that a contribution of this worker to this iteration belongs to.
  int64_t update_number(int worker, int64_t iteration) const;

  // Makes a change to some of its keys; when all are made, `note` it.
  void make(const Change& change, const KeyRange& part, std::span<const float> values);
  void note(const Change& change, std::string squares);

  // The contribution of this iteration or a later one to exactly these keys, if it is in the values
  // already: a worker repeats what it does not know to have arrived. Returns the squares that were
  // noted with it.
  const std::string* find(int worker, const KeyRange& keys, int64_t iteration) const;

  uint64_t changes() const { return changes_; }
  bool begun() const { return begun_; }
  // The last iteration of which something is in it.
  int64_t latest() const;

  uint64_t pushes = 0;                        // that ended an iteration of their worker
  std::map<int64_t, int64_t> staleness = {};  // of them

  // All but setup, values and states, as text.
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
  std::map<std::tuple<int, uint64_t, uint64_t>, Made> made_;  // by worker and keys: the last one
  int64_t updates_ = 0;
  std::map<int, Updated> updated_;  // by worker: its last update
};

// All that a server keeps, by range.
using Holdings = std::map<int, std::shared_ptr<KeptRange>>;

}  // namespace artel::ps
