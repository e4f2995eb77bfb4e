// How many lanes a new run has. The rule has no other home.
#pragma once

#include <algorithm>

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

}  // namespace artel
