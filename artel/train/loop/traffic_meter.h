// One worker's traffic and waiting times in a fit, over all memberships. Internal to train.
#pragma once

#include <vector>

#include "artel/train/strategy.h"
#include "artel/train/trainer.h"

namespace artel {

class TrafficMeter {
 public:
  // Counts from here.
  explicit TrafficMeter(Cluster& cluster);

  // Reads the counters of the present group. Call before it is replaced.
  void read();
  // Writes what was read last, and the strategy's times.
  void report(const Strategy& strategy, TrainingState& now) const;
  // The membership and its strategy are over: what was read last is final.
  void end_membership(const Strategy& strategy);
  // The traffic of all workers, by rank. Collective. `timeout` in seconds; 0: that of the group.
  std::vector<WorkerTraffic> gather(comm::Group& group, const std::string& label,
                                    double timeout) const;

 private:
  Strategy::Traffic times_with(const Strategy& strategy) const;

  Cluster& cluster_;
  WorkerTraffic traffic_, before_;  // of all memberships, and of earlier ones
  Strategy::Traffic times_before_;  // of earlier memberships
};

}  // namespace artel
