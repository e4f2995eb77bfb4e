// Replaces the weights of dense layers and token tables by quantised matrices, for inference.
//
//   const artel::ModelGraph network = artel::decoding_graph(model, 1);
//   const artel::QuantisedType type = {{artel::DType::i8, {10, 32}}, {artel::DType::f16, {10, 1}}};
//   const artel::Graph small = artel::quantise_weights(network.graph, {{"head.weight", type}});
#pragma once

#include <map>
#include <string>

#include "artel/graph/graph.h"

namespace artel {

// Storage of a quantised matrix (tensor/quantised.h).
struct QuantisedType {
  TensorType codes, scales;
  bool offsets = false;
  bool turned = false;  // the weight is the transpose of the matrix
};

// Replaces each parameter NAME in `types` by the parameters NAME.codes, NAME.scales, and, if used,
// NAME.offsets. Ignores unknown names. Throws an Error of kind unsupported if an op other than
// dense and embedding reads the weight, and of kind shape if the stored matrix has another shape.
Graph quantise_weights(const Graph& graph, const std::map<std::string, QuantisedType>& types);

}  // namespace artel
