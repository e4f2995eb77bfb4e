// Time that failures of machines cost a training, with elastic workers and with restarts.
//
//   const artel::plan::FailureCost cost = artel::plan::failure_cost(
//       {.machines = 1000, .between_failures = 30 * 86400.0, .step = 0.5});
//   artel::println("{:.1f} % lost", 100 * cost.elastic);
#pragma once

namespace artel::plan {

struct FailureModel {
  double machines = 1;
  double between_failures = 0;  // mean seconds between two failures of one machine
  double step = 0;              // seconds
  double notice = 20;           // until a dead machine is noticed (cluster.patience)
  double regroup = 2;           // elastic: until the others continue with its work
  double restart = 60;          // restarts: until all processes run again
  double checkpoint = 5;        // restarts: seconds of writing a checkpoint, or reading one
};

struct FailureCost {
  double per_day = 0;   // failures of all machines
  double elastic = 0;   // share of the time lost; each failure repeats a step
  double restarts = 0;  // share of the time lost, with the best interval; 1: no progress
  double interval = 0;  // the best number of seconds between checkpoints
};

// Failures are independent and equally likely at any time. A machine that failed is replaced at
// once. The best interval follows Young (1974): sqrt(2 x checkpoint x time between failures).
FailureCost failure_cost(const FailureModel& model);

}  // namespace artel::plan
