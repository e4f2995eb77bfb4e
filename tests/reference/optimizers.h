// The update rules of artel/optim in double, written from docs/optimizers.md and the papers.
#pragma once

#include <array>
#include <map>
#include <string>
#include <vector>

#include "artel/optim/config.h"
#include "tests/reference/array.h"

namespace artel::reference {

class Optimizer {
 public:
  explicit Optimizer(optim::OptimizerConfig config) : config_(std::move(config)) {}

  // One update of all parameters that have a gradient, by name; `step` counts from 1. Gradients are
  // clipped by norm over all of them, then by value. Weight decay, and the scaling by norms of LARS
  // and LAMB, are for parameters of two axes or more unless the configuration says otherwise.
  void update(std::map<std::string, Array>& parameters,
              const std::map<std::string, Array>& gradients, int64_t step, double learning_rate);

  // The optimizer state of one parameter, zero before the first step. Each rule uses a part.
  using State = std::array<std::vector<double>, 3>;

 private:
  optim::OptimizerConfig config_;
  std::map<std::string, State> states_;
};

}  // namespace artel::reference
