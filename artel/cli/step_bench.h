// Training steps of a model on random data in memory, for benchmarks and profiles.
#pragma once

#include "artel/train/step/stepper.h"
#include "artel/train/trainer.h"

namespace artel::cli {

struct StepBenchOptions {
  TensorType x, y;  // of one sample; an i32 target is a class
  int64_t classes = 10;
  int64_t batch = 1;
  int threads = 0;  // 0: all cores
  int lanes = 1;
  std::string device = "cpu";  // as in exec/devices.h
  std::string loss = "cross_entropy";
  std::vector<std::string> freeze = {};
  optim::OptimizerConfig optimizer = optim::sgd(0.01, {.momentum = 0.9});
};

class StepBench {
 public:
  StepBench(const Model& model, StepBenchOptions options);

  const StepBenchOptions& options() const { return options_; }
  Stepper& stepper() { return *stepper_; }
  Device& device() const { return *choices_.device; }

  struct Result {
    int64_t steps = 0;
    double seconds = 0;
    double cpu_seconds = 0;   // of all threads
    CopiedBytes copied = {};  // between the processor and the device
  };
  // Runs whole steps (forward, loss, backward, update) for about that long, at least one.
  Result run(double seconds);

 private:
  StepBenchOptions options_;
  Cluster cluster_;
  Trainer trainer_;  // owns the parameters
  KernelChoices choices_;
  std::unique_ptr<Stepper> stepper_;
  Tensor x_, y_;
  int64_t step_ = 0;
};

}  // namespace artel::cli
