// Copies of divided state that survive the loss of a worker. Each worker has its own part and that
// of another worker after some step. When a group breaks, the remaining workers assemble the newest
// step that they have completely.
//
// Copying overlaps with the next steps. An update waits until the part is copied. The copy has half
// of the time until the next one to reach the other worker; then a step waits for it. So when any
// worker has finished that step, all copies of the earlier one have arrived.
//
// Ranges kept by several workers anyway are not sent. A copy is on another machine if possible.
// Internal to train. Calls come from the loop's thread unless noted otherwise.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artel/train/parts/divided_state.h"

namespace artel {

// Some elements of a tensor, in memory order.
struct CopiedRange {
  std::string name;  // in checkpoints
  size_t first = 0;
  std::vector<float> values;
};

// Part of a worker's state after a step.
struct StateCopy {
  int64_t step = -1;
  std::string text;  // TrainerState::state_text; empty if unknown
  std::vector<CopiedRange> ranges;
};

// The target of each rank's copy: another host if that is possible for all, else the next rank.
// Each rank is the target of exactly one. A pure function of the hosts of the ranks.
std::vector<int> mirror_targets(const std::vector<int>& hosts);

// The ranges of `own` that none of the others keeps. Ranges are in order and do not overlap.
std::vector<KeptRange> exclusive_ranges(const std::vector<KeptRange>& own,
                                        const std::vector<std::vector<KeptRange>>& others);

// Maximum memory for copies on a worker that updates `updated` bytes, while both old and new copies
// exist. `only_one` is true if each part has a single owner, so that the worker also holds a copy
// of another worker's part.
inline double mirror_bytes(double updated, bool only_one) { return updated * (only_one ? 4 : 2); }
// True if copies fit into a quarter of the free memory.
inline bool has_room_for_mirrors(double bytes, double free) { return 4 * bytes <= free; }

class Mirrors {
 public:
  // `every` is the number of steps between copies.
  explicit Mirrors(int64_t every) : every_(every) {}
  ~Mirrors() { end(); }

  // Collective. Each worker of the group passes the parts of the state that it updates, with the
  // tensors in the same order. If the copies would take more than a quarter of the free memory of
  // any machine, none are made, and worker 0 logs that. `limit` overrides the free memory in bytes;
  // 0 does not.
  void begin(comm::Group& group, std::vector<DividedPart> parts, double limit = 0);
  // True from `begin` to `end`, if copies are made.
  bool at_work() const { return group_.has_value(); }
  // True if a state after this step should be copied: every `every` steps, and after the first step
  // of a membership.
  bool due(int64_t step) const;
  // Between two steps: starts copying. All workers call this after the same steps.
  void start(int64_t step, std::string text);
  // Call before the update of a step, from any thread. Waits for copies that must be finished by
  // then. Throws if the group has broken.
  void before_update(int64_t step);
  // Call after a step. Copies that all workers have by then replace earlier ones.
  void confirm(int64_t step);
  // True if the copy in flight is of this step.
  bool copying(int64_t step) const { return coming_ && coming_->own.step == step; }
  // Waits until the copy in flight has arrived.
  void wait();

  // Ends the membership. Never throws. Keeps copies in flight as far as they are complete.
  void end();
  // Adds a copy of these parts in their present state, which is after this step.
  void add_own(int64_t step, std::string text, const std::vector<DividedPart>& parts);
  // This worker's copies, of its own part and of others.
  std::vector<const StateCopy*> copies() const;
  // Drops the copies of other steps.
  void keep_only(int64_t step);

 private:
  // Elements with only one owner.
  struct Only {
    size_t part = 0;
    KeptRange range;
    size_t kept = 0;  // index among all ranges of that worker
  };
  struct Set {
    StateCopy own, theirs;
    std::atomic<bool> copied = false, received = false;
  };
  bool fits(comm::Group& group, double limit) const;
  void transfer(Set& set);
  bool arrives_by(int64_t step) const;

  const int64_t every_;
  std::optional<comm::Group> group_;
  std::vector<DividedPart> parts_;
  int to_ = 0, from_ = 0;
  std::vector<Only> sent_, expected_;
  bool begun_ = false;                       // something has been copied in this membership
  std::unique_ptr<Set> coming_;              // in flight, or not confirmed by all
  std::vector<std::unique_ptr<Set>> there_;  // arrived, newest last
  std::optional<StateCopy> last_;            // added by `add_own`
  std::shared_future<void> copying_, sending_;
};

}  // namespace artel
