#include "artel/run/report/recent_states.h"

#include <algorithm>
#include <utility>

namespace artel {

void RecentStates::add(const TrainingState& state, bool epoch) {
  // This worker was not there for a while.
  if (!states_.empty() && state.step > states_.back().state.step + 1) states_.clear();
  // Metrics written at the time of the last state may not have reached the disk.
  while (!states_.empty() &&
         seconds_between(states_.front().since, states_.back().since) > seconds_)
    states_.pop_front();
  // The end of an epoch must be preceded by its last step: a worker that takes over drops the lines
  // of the first step it reports, so the step's own line would be missing.
  while (!states_.empty() && states_.front().epoch) states_.pop_front();
  if (!epoch || !states_.empty()) states_.push_back({Clock::now(), epoch, state});
}

int64_t RecentStates::continue_after(int64_t finished, int64_t written) {
  const int64_t kept = std::min(finished, written - 1);
  if (states_.empty() || kept < states_.front().state.step)
    return states_.empty() ? finished : states_.front().state.step - 1;
  while (!states_.empty() && states_.front().state.step <= kept) states_.pop_front();
  return states_.empty() ? finished : kept;
}

void RecentStates::tell(RunReport& report, int64_t printed) {
  for (const Kept& kept : std::exchange(states_, {}))
    if (kept.epoch)
      report.after_epoch(kept.state, kept.state.step > printed);
    else
      report.after_step(kept.state);
}

}  // namespace artel
