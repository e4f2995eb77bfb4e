// Workers that leave a fit between two steps, because they were asked to. Internal to train.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "artel/base/time.h"
#include "artel/train/loop/parts_recovery.h"
#include "artel/train/trainer_state.h"

namespace artel {

class Departures {
 public:
  // Borrows both.
  Departures(TrainerState& state, PartsRecovery& parts) : s_(state), parts_(parts) {}

  void end_membership() { expected_ = false; }
  // Before a step.
  void announce() { announced_ = s_.cluster.elastic() && wished(); }
  // True if this worker wants to leave after this step.
  const bool& announced() const { return announced_; }
  // After a step, with whose sums all workers have learned whether one wants to leave.
  void expect(bool leaves) { expected_ = leaves; }

  // The ranks of the workers that want to leave, if all workers know that there may be some; else
  // empty. Collective.
  std::vector<int> leavers();
  // True if this worker wants to leave and may do so now. Where each worker has only a part, one
  // leaves at a time, when another one has a copy of its part. Elsewhere worker 0 leaves a few
  // steps and a moment after it was asked to: if all are asked, the last one saves and reports.
  bool may_leave(const std::vector<int>& leavers);

 private:
  bool wished() const { return s_.leave || s_.cluster.dismissed(); }

  TrainerState& s_;
  PartsRecovery& parts_;
  bool announced_ = false, expected_ = false;
  // The step after which, and the time when, worker 0 was asked to leave.
  std::optional<std::pair<int64_t, Clock::time_point>> asked_;
};

}  // namespace artel
