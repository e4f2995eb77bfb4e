// Weights for inference, some of which are quantised matrices (tensor/quantised.h).
//
//   artel::KernelChoices choices;
//   const artel::QuantisedWeights weights(model, {artel::DType::f32, {784}},
//                                         artel::checkpoint::load_weights("small.safetensors"),
//                                         choices);
//   artel::println("{} of the weights are quantised", weights.matrices.size());
#pragma once

#include <map>
#include <string>

#include "artel/exec/parameters.h"
#include "artel/exec/plan/choices.h"
#include "artel/graph/passes/quantise_weights.h"
#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

// The storage of each quantised matrix among the weights.
std::map<std::string, QuantisedType> quantised_types(const NamedTensors& weights);

struct QuantisedWeights {
  std::map<std::string, QuantisedType> matrices;
  Parameters parameters;

  // Throws if the weights do not fit the model, or if a layer other than dense layers and
  // embeddings reads a matrix.
  QuantisedWeights(const Model& model, const TensorType& sample, const NamedTensors& weights,
                   KernelChoices& choices);
};

}  // namespace artel
