#include "artel/train/loop/interruptions.h"

#include <utility>

#include "artel/cluster/worker_name.h"

namespace artel {

void Interruptions::begin() {
  broken_at_ = Clock::now();
  if (!interrupted_) interrupted_ = phase_began_;
}

MembershipChange Interruptions::regroup(const Error& cause) {
  const bool progressed = std::exchange(broken_after_, s_.step) != s_.step;
  MembershipChange change = s_.cluster.regroup(cause, progressed);
  rejoined_ = true;
  lost_.insert(lost_.end(), change.gone.begin(), change.gone.end());
  return change;
}

double Interruptions::seconds_lost() const {
  return seconds_between(interrupted_.value_or(broken_at_), phase_began_);
}

void Interruptions::check_losses() {
  for (const auto& [worker, why] : std::exchange(lost_, {})) {
    require(worker.after_step != s_.step || why != "ended" || progressed_, ErrorKind::cancelled,
            "{} (process {} on host {}) ended in step {}, as did the one before it: the run stops",
            name_of(worker), worker.process, worker.host, s_.step + 1);
    if (worker.place >= 0 && why != "left") s_.cluster.note_loss(worker.place, s_.step);
  }
}

}  // namespace artel
