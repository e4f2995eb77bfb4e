// Weights from files into the parameters of a model.
#pragma once

#include <functional>
#include <string>

#include "artel/exec/parameters.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

// Throws unless there is a tensor of the right shape for each parameter and state for which
// `wanted` holds (absent: all), listing all that are missing with the nearest names; extra ones are
// ignored.
void check_weights_fit(const Parameters& parameters, const NamedTensors& weights,
                       const std::function<bool(const std::string&)>& wanted = {});
// Sets those parameters and states after such a check.
void load_weights(Parameters& parameters, const NamedTensors& weights,
                  const std::function<bool(const std::string&)>& wanted = {});

}  // namespace artel
