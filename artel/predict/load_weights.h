// Weights from files into the parameters of a model.
#pragma once

#include <functional>
#include <string>

#include "artel/exec/parameters.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

// Sets all parameters and states for which `wanted` holds (absent: all). Throws if one is missing
// or has another shape, listing all of them with the nearest names; further tensors do no harm.
void load_weights(Parameters& parameters, const NamedTensors& weights,
                  const std::function<bool(const std::string&)>& wanted = {});

}  // namespace artel
