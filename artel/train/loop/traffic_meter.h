// One worker's traffic and waiting times in a fit, over all memberships. Internal to train.
#pragma once

#include <vector>

#include "artel/train/strategy.h"
#include "artel/train/trainer.h"

namespace artel {

class TrafficMeter {
 public:
  // Starts counting at zero.
  explicit TrafficMeter(Cluster& cluster);

  // Reads the counters of the present group. Call before it is replaced.
  void read();
  // Writes what was read last, and the strategy's times.
  void report(const Strategy& strategy, TrainingState& now) const;
  // Call when a membership ends. Adds its counters, as last read, to the total.
  void end_membership(const Strategy& strategy);
  // The traffic of all workers, by rank. Collective. `timeout` in seconds; 0: that of the group.
  std::vector<WorkerTraffic> gather(comm::Group& group, const std::string& label,
                                    double timeout) const;

 private:
  Strategy::Traffic times_with(const Strategy& strategy) const;

  Cluster& cluster_;
  WorkerTraffic total_;
  WorkerTraffic earlier_memberships_;
  Strategy::Traffic earlier_times_;
};

}  // namespace artel
