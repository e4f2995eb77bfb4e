// Batch norms that cost nothing when a network is only used: what they multiply by becomes part of
// the weights of the convolutions before them, what they add their bias. The same function up to
// rounding, and one pass over each image less.
#pragma once

#include "artel/predict/predictor.h"

namespace artel {

// The weights of nn::folding_norms(network) from those of the network, whose batch norms have the
// default epsilon. Throws if the weights of a batch norm are missing.
NamedTensors fold_norms(const Model& model, const TensorType& sample, NamedTensors weights);

// Uses the network that way.
Predictor folded_predictor(const Model& model, const TensorType& sample,
                           const NamedTensors& weights, int threads);

}  // namespace artel
