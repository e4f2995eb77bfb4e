// What a model consists of, for people.
#pragma once

#include "artel/nn/model.h"

namespace artel::cli {

struct StepRequest {
  TensorType x, y;  // of one sample
  int64_t batch = 1;
  std::string loss = "cross_entropy";
  int slots = 0;  // floats that the optimizer keeps for each parameter
};

// Every layer with output shape, parameters and operations (of the forward pass of one sample), and
// the memory that a training step takes.
std::string describe_model(const Model& model, const StepRequest& request);

}  // namespace artel::cli
