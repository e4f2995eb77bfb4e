// The layers of a model as a table for people.
#pragma once

#include "artel/nn/model.h"
#include "artel/train/strategies/sharded.h"

namespace artel::cli {

struct StepRequest {
  TensorType x, y;  // of one sample
  int64_t batch = 1;
  std::string loss = "cross_entropy";
  int slots = 0;               // floats that the optimizer keeps for each parameter
  int lanes = 1, threads = 1;  // of one worker
  int workers = 1;             // share parts as selected by `sharding`
  ShardingOptions sharding = {};
  bool mirrors = false;                                  // parts have copies
  std::function<bool(const std::string&)> trained = {};  // which parameters; absent: all
};

// Every layer with output shape, parameters and operations (of the forward pass of one sample), and
// the memory that a worker's training takes.
std::string describe_model(const Model& model, const StepRequest& request);

}  // namespace artel::cli
