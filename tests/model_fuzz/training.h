// One training of a case by Artel, step by step, with everything that a comparison needs.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "artel/train/step/stepper.h"
#include "tests/model_fuzz/network_case.h"
#include "tests/reference/interpreter.h"

namespace artel::model_fuzz {

using Arrays = std::map<std::string, reference::Array>;

// The share of the needed memory that a case gets as its limit.
inline constexpr std::array<double, 3> kMemoryShares = {0.85, 0.65, 0.5};
// The same for workers in a mesh, the tightest first. Just below 1, lanes of unequal size differ in
// whether they fit.
inline constexpr std::array<double, 5> kMeshMemoryShares = {0.5, 0.65, 0.8, 0.9, 0.97};

struct Setting {
  int threads = 1;
  size_t memory_limit = 0;
  bool tune = false;
  bool check_memory = false;
  int lanes_together = 0;  // 0: all
  Device* device = &cpu();
};

class Training {
 public:
  Training(const NetworkCase& network, const Setting& setting);

  struct Step {
    double loss = 0;
    Arrays gradients;  // summed over lanes, of all parameters that have one
    Arrays metrics;    // their sums over lanes
  };
  // The next step, counted from 1. Throws what the stepper throws.
  Step step();

  // All outputs of the network as it is now for the batch of step 1, outside training: the
  // prediction and others, the loss without smoothing, sums of metrics.
  Arrays evaluate();

  Arrays parameters() const;  // and states
  std::vector<float> bits() const;
  // The bytes of activations that the largest lane takes.
  size_t activation_bytes();

 private:
  reference::Array plain(const ParameterEntry& entry, const std::byte* memory) const;

  const NetworkCase& network_;
  const Setting setting_;
  KernelChoices choices_;
  Parameters parameters_;
  std::unique_ptr<Stepper> stepper_;
  int64_t steps_ = 0;
};

}  // namespace artel::model_fuzz
