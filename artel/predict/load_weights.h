// Loads weights into the parameters of a model.
#pragma once

#include <functional>
#include <string>

#include "artel/exec/parameters.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

// Converts tensors to the types of the parameters: quantised matrices (tensor/quantised.h) become
// f32 where the parameter is f32. Ignores extra tensors. Throws if a parameter or state for which
// `wanted` is true has no tensor of the same shape; the message lists all that are missing with the
// nearest names. Without `wanted`, all are required.
NamedTensors fitted_weights(const Parameters& parameters, const NamedTensors& weights,
                            const std::function<bool(const std::string&)>& wanted = {});
// Checks the weights like fitted_weights and copies them into the parameters.
void load_weights(Parameters& parameters, const NamedTensors& weights,
                  const std::function<bool(const std::string&)>& wanted = {});

}  // namespace artel
