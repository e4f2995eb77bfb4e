// Breaks of the workers' group during a fit: when it broke, which workers were lost, and how much
// time the break cost. Internal to train.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/time.h"
#include "artel/train/trainer_state.h"

namespace artel {

class Interruptions {
 public:
  explicit Interruptions(TrainerState& state) : s_(state) {}

  // Call when a step, a test, or a checkpoint begins, which a break may interrupt.
  void begin_phase() { phase_began_ = Clock::now(); }
  // The group has broken.
  void begin();
  // This worker is a newcomer that has just received the history of the run.
  void join() { broken_at_ = Clock::now(); }
  // Forms the next group. Call after `begin`.
  MembershipChange regroup(const Error& cause);
  // True if this worker has joined others since the last call.
  bool take_rejoined() { return std::exchange(rejoined_, false); }
  // This worker has entered the run.
  void rejoin() { rejoined_ = true; }
  // When the last one began.
  Clock::time_point began() const { return broken_at_; }
  // Seconds from the beginning of the first interrupted phase to that of the present one.
  double seconds_lost() const;
  // A step has been finished.
  void end() { interrupted_.reset(); }

  // A membership begins with the state of the run, and ends.
  void begin_membership() { begun_at_ = s_.step; }
  void end_membership() { progressed_ = begun_at_ >= 0 && s_.step > begun_at_; }
  // Call once this worker has the state of the run again. Stops the run if a restarted worker has
  // died again before it finished a step, because it would do so forever.
  void check_losses();

 private:
  TrainerState& s_;
  std::vector<MembershipChange::Gone> lost_;  // since the last membership
  Clock::time_point broken_at_;
  Clock::time_point phase_began_ = Clock::now();
  std::optional<Clock::time_point> interrupted_;  // start of the first interrupted phase
  int64_t broken_after_ = -1;                     // the step after which a group last broke
  int64_t begun_at_ = -1;                         // the step before the first one of a membership
  bool progressed_ = false;  // the last membership finished a step, even if it must be repeated
  bool rejoined_ = false;
};

}  // namespace artel
