// Local steps: workers train independently for some steps, then continue from the average of their
// weights.
//
// The mean change since the last average moves the common weights:
//   change   = mean over workers of (own weights - common weights)
//   velocity = momentum * velocity + change
//   common  += learning_rate * (change + momentum * velocity)
// With momentum 0 and learning rate 1, this is the plain average (local SGD); with 0.9 and 0.7, it
// is DiLoCo's outer step, similar to SlowMo. States (running statistics) are always averaged. An
// average sends 2 (N-1)/N times the weights from each of N workers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/comm/codecs/codec.h"
#include "artel/exec/parameters.h"
#include "artel/train/parts/own_state.h"

namespace artel {

struct AveragingOptions {
  double momentum = 0;
  double learning_rate = 1;
  std::string compress = {};  // codec of the changes; empty means exact
  uint64_t seed = 0;
};

class Averaging {
 public:
  // The workers' weights must be equal. Borrows `parameters` and `velocity`, which have the same
  // layout; `velocity` is unused without momentum. Ignores parameters and states that are not
  // `moving`.
  Averaging(const Membership& membership, Parameters& parameters, Parameters& velocity,
            const std::function<bool(const std::string&)>& moving, const AveragingOptions& options);

  // Collective: averages the weights of all workers. `share` is this worker's share of the samples;
  // all shares add up to 1. The bits depend on the number of workers, not on the transport.
  void meet(float share, int64_t step);

  // The codec's residuals and, `between` two averages, this worker's weights and the common ones.
  // Restoring them also changes the parameters and the velocity.
  OwnState state(bool between) const;
  void set_state(const OwnState& state);

 private:
  struct Part {
    size_t offset = 0, floats = 0;  // position in the block of parameters
    bool weight = true;             // false for a state
  };

  Membership membership_;
  Parameters &parameters_, &velocity_;
  AveragingOptions options_;
  std::unique_ptr<comm::Codec> codec_;
  comm::ErrorFeedback feedback_;
  std::vector<Part> parts_;    // weights, then states: the order of the changes
  size_t weight_floats_ = 0;   // of the changes
  std::vector<float> common_;  // weights at the last average
  comm::SharedBytes memory_;
  std::span<float> changes_;
};

}  // namespace artel
