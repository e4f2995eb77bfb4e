// How many lanes a run has: the rule for new runs, which has no other home, and the number that a
// checkpoint has kept.
#pragma once

#include <algorithm>
#include <optional>
#include <string>

namespace artel {

struct LaneRequest {
  int asked = 0;    // cluster.lanes; 0: the run may choose
  int threads = 1;  // of each worker
  int workers = 1;
  int sharing = 1;  // workers that work on the same lanes: cluster.tensor
};

// Each worker, or those that share lanes, get at least one.
inline int lanes_of_new_run(const LaneRequest& request) {
  if (request.asked == 0) return request.threads * request.workers;
  return std::max(request.asked, request.workers / request.sharing);
}

// In the state of a checkpoint (checkpoint::Checkpoint::state); nothing if it has none.
std::optional<int> lanes_in_state(const std::string& state);

}  // namespace artel
