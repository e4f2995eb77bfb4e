// One training of a case by Artel, step by step, with everything that a comparison wants to see.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "artel/train/stepper.h"
#include "tests/model_fuzz/network_case.h"
#include "tests/reference/interpreter.h"

namespace artel::model_fuzz {

using Arrays = std::map<std::string, reference::Array>;

struct Setting {
  int threads = 1;
  size_t memory_limit = 0;
  bool tune = false;
  bool check_memory = false;
};

class Training {
 public:
  Training(const NetworkCase& network, const Setting& setting);

  struct Step {
    double loss = 0;
    Arrays gradients;  // summed over lanes, of all parameters that have one
  };
  // The next step, from 1 on. Throws what the stepper throws.
  Step step();

  Arrays parameters() const;  // and states
  std::vector<float> bits() const;
  // The bytes of activations that the largest lane takes.
  size_t activation_bytes();

 private:
  reference::Array plain(const ParameterEntry& entry, const std::byte* memory) const;

  const NetworkCase& network_;
  KernelChoices choices_;
  Parameters parameters_;
  std::unique_ptr<Stepper> stepper_;
  int64_t steps_ = 0;
};

}  // namespace artel::model_fuzz
