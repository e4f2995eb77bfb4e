// Folds batch norms into the weights and biases of the preceding convolutions for inference. The
// result is the same function up to rounding and saves one pass over each image.
#pragma once

#include "artel/predict/predictor.h"

namespace artel {

// Converts the weights of `model` to those of nn::folding_norms(model). Batch norms must have the
// default epsilon. Throws if the weights of a batch norm are missing.
NamedTensors fold_norms(const Model& model, const TensorType& sample, NamedTensors weights);

// A predictor of the folded network.
Predictor folded_predictor(const Model& model, const TensorType& sample,
                           const NamedTensors& weights, int threads);

}  // namespace artel
