// Local steps: workers train apart for a while, then all go on from the average of their weights.
//
// The change since the last meeting, averaged over the workers, is what moves the common weights:
//   change   = mean over workers of (own weights - common weights)
//   velocity = momentum * velocity + change
//   common  += learning_rate * (change + momentum * velocity)
// With momentum 0 and learning rate 1 that is the plain average (local SGD); with 0.9 and 0.7 it is
// DiLoCo's outer step, a relative of SlowMo's. States (running statistics) are always averaged.
// A meeting sends 2 (N-1)/N times the weights out of each of N workers.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/comm/codecs/codec.h"
#include "artel/exec/parameters.h"
#include "artel/train/own_state.h"

namespace artel {

struct AveragingOptions {
  double momentum = 0;
  double learning_rate = 1;
  std::string compress = {};  // a codec for the changes; empty: exact
  uint64_t seed = 0;
};

class Averaging {
 public:
  // For workers whose weights are equal now. `parameters` and `velocity` (laid out alike;
  // unused without momentum) are borrowed. Parameters and states that are not `moving` are
  // left alone.
  Averaging(const Membership& membership, Parameters& parameters, Parameters& velocity,
            const std::function<bool(const std::string&)>& moving, const AveragingOptions& options);

  // A collective call: all workers hold equal weights afterwards. `share` is this worker's part of
  // the samples; those of all add up to 1. The bits of the result depend on the number of workers,
  // not on the transport.
  void meet(float share, int64_t step);

  // What the codec has held back; `between` two meetings, also this worker's weights and the common
  // ones. Restoring that changes the parameters and the velocity, too.
  OwnState state(bool between) const;
  void set_state(const OwnState& state);

 private:
  struct Part {
    size_t offset = 0, floats = 0;  // in the block of parameters
    bool weight = true;             // false: a state
  };

  Membership membership_;
  Parameters &parameters_, &velocity_;
  AveragingOptions options_;
  std::unique_ptr<comm::Codec> codec_;
  comm::ErrorFeedback feedback_;
  std::vector<Part> parts_;    // weights, then states: the order of the changes
  size_t weight_floats_ = 0;   // of the changes
  std::vector<float> common_;  // the weights at the last meeting
  comm::SharedBytes memory_;
  std::span<float> changes_;
};

}  // namespace artel
