// Weight-only quantisation: stores matrices with 8 or 4 bits per weight. Activations stay float.
//
//   const artel::shrink::SmallWeights small = artel::shrink::quantise(
//       artel::inference_graph(model, type).graph, weights, {.form = {.bits = 4}});
//   artel::checkpoint::save_weights("small.safetensors", small.weights);
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "artel/graph/graph.h"
#include "artel/tensor/quantised.h"

namespace artel::shrink {

struct WeightOptions {
  QuantiseOptions form;
  // Returns true for weights that stay float. Without it, all eligible weights are quantised.
  std::function<bool(const std::string& name)> keep_float = {};
};

// The result for one matrix, or for another parameter with two or more axes, which stays float.
struct ShrunkWeight {
  std::string name;
  Shape shape;
  size_t bytes_before = 0, bytes_after = 0;
  double error = 0;       // root mean square error, relative to the RMS of the weights
  std::string left = {};  // the reason for keeping it float; empty if it was quantised
};

struct SmallWeights {
  NamedTensors weights;                      // matrices in the format of tensor/quantised.h
  std::vector<ShrunkWeight> matrices;        // in network order
  size_t bytes_before = 0, bytes_after = 0;  // of all weights, including biases and norms
};

// Quantises the matrices that only dense layers and embeddings read. `weights` are the parameters
// of `graph` in fp32 or a shorter type. Throws if a parameter is missing.
SmallWeights quantise(const Graph& graph, const NamedTensors& weights,
                      const WeightOptions& options);

}  // namespace artel::shrink
