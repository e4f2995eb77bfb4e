// Copies of state that lies in parts, so that a worker that is lost takes nothing with it: each
// worker has its own part and that of another one as they were after some step. When a group has
// broken, those who are left put together the newest step of which they have everything.
//
// Copying goes on while the next steps compute. An update waits until the part is copied; the copy
// has half of the time until the next one to reach the other worker, then a step waits for it. So
// when any worker has finished that step, all copies of the earlier one have arrived.
//
// What several workers keep anyway is not sent. A copy lies on another machine where there is one.
// Internal to train; calls come from the thread of the loop unless said otherwise.
#pragma once

#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artel/train/divided_state.h"

namespace artel {

// Some elements of a tensor, as they lie in memory.
struct CopiedRange {
  std::string name;  // in checkpoints
  size_t first = 0;
  std::vector<float> values;
};

// What somebody had after a step.
struct StateCopy {
  int64_t step = -1;
  std::string text;  // TrainerState::state_text; empty: not known
  std::vector<CopiedRange> ranges;
};

// To whom each rank's copy goes: another host where that is possible for all, else the next rank. A
// rank is the target of exactly one. A pure function of the hosts of the ranks.
std::vector<int> mirror_targets(const std::vector<int>& hosts);

// What of `own` none of the others keeps. Ranges are in order and do not overlap.
std::vector<KeptRange> exclusive_ranges(const std::vector<KeptRange>& own,
                                        const std::vector<std::vector<KeptRange>>& others);

// The most that copies take on a worker that updates so many bytes, while new ones come and those
// before them are still there: of its own part, and of as large a part of another worker, if that
// one is the only one to keep it.
inline double mirror_bytes(double updated, bool only_one) { return updated * (only_one ? 4 : 2); }
// Whether there is room for them: in a quarter of the memory that is free.
inline bool has_room_for_mirrors(double bytes, double free) { return 4 * bytes <= free; }

class Mirrors {
 public:
  // `every` so many steps.
  explicit Mirrors(int64_t every) : every_(every) {}
  ~Mirrors() { end(); }

  // For the workers of a group, of which each updates these parts of the state, in the same order
  // of tensors. A collective call. If the copies would take more than a quarter of the memory that
  // is free on any of their machines, there will be none, and worker 0 says so.
  // `limit`: as if so many bytes were free; 0: none.
  void begin(comm::Group& group, std::vector<DividedPart> parts, double limit = 0);
  // Whether the copies of a membership are made: from `begin` to `end`.
  bool at_work() const { return group_.has_value(); }
  // Whether a state after this step is to be copied: each so many steps, and the first of a
  // membership.
  bool due(int64_t step) const;
  // Between two steps: begins to copy. All workers make this call after the same steps.
  void start(int64_t step, std::string text);
  // From any thread, before the update of a step: waits for what must be done by then. Throws if
  // the group has broken.
  void before_update(int64_t step);
  // When a step is finished: copies that all have by then replace earlier ones.
  void confirm(int64_t step);
  // Whether the last copy is of this step: then returns when it has arrived at the other worker.
  bool arrived(int64_t step);
  // Until what is under way has arrived.
  void wait();

  // The membership is over. Never throws. What was under way is kept as far as it is complete.
  void end();
  // Adds a copy of these parts, as they are now, which is after this step.
  void add_own(int64_t step, std::string text, const std::vector<DividedPart>& parts);
  // What this worker has, its own and of others.
  std::vector<const StateCopy*> copies() const;
  // Nothing of other steps is needed any more.
  void keep_only(int64_t step);

 private:
  // Elements that only one worker keeps.
  struct Only {
    size_t part = 0;
    KeptRange range;
    size_t kept = 0;  // the range of that worker that they belong to, among all of its ranges
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
  std::unique_ptr<Set> coming_;              // under way, or not known to have arrived everywhere
  std::vector<std::unique_ptr<Set>> there_;  // that arrived, the newest last
  std::optional<StateCopy> last_;            // of `add_own`
  std::shared_future<void> copying_, sending_;
};

}  // namespace artel
