// The layers of a network and their cost, for people.
//
//   const artel::nn::Summary summary =
//       artel::nn::summarise(model, {artel::DType::f32, {1, 784}});
//   artel::println("{} parameters, {} operations", summary.parameters, summary.flops);
#pragma once

#include <string>
#include <vector>

#include "artel/nn/model.h"

namespace artel::nn {

// One op of the network; rows are in the order in which ops run.
struct SummaryRow {
  std::string layer;  // "layer1.0.conv1"
  std::string op;     // "conv2d"
  Shape output;
  int64_t parameters = 0;  // trained elements that no row above has counted
  double flops = 0;        // of the forward pass; a multiply and an add are two
};

struct Summary {
  std::vector<SummaryRow> rows;
  int64_t parameters = 0;
  int64_t states = 0;  // elements kept but not trained, such as running statistics
  double flops = 0;
};

// For the forward pass in training, for inputs `x` (including the batch axis).
Summary summarise(const Model& model, const TensorType& x);

// The operations of all nodes; for a graph of training_graph, those of a training step.
double graph_flops(const Graph& graph);

}  // namespace artel::nn
