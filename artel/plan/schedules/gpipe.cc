// GPipe (Huang et al., 2019): all lanes forward, then all backward. The simplest schedule. Holds
// the activations of all lanes and idles for the time of N-1 lanes.
#include "artel/plan/schedules/kinds.h"

namespace artel::plan {

ScheduleKind gpipe() {
  return {.help = "all lanes forward, then all backward",
          .tasks =
              [](const PipelineShape& shape, int worker) {
                std::vector<Task> tasks;
                for (const Work work : {Work::forward, Work::backward})
                  for (int lane = 0; lane < shape.lanes; ++lane)
                    tasks.push_back({work, lane, worker});
                return tasks;
              },
          .keeps = [](const PipelineShape& shape, int) { return shape.lanes; }};
}

}  // namespace artel::plan
