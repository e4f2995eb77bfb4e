// A summary of the layers of a network and their cost.
//
//   const artel::nn::Summary summary =
//       artel::nn::summarise(model, {artel::DType::f32, {1, 784}});
//   artel::println("{} parameters, {} operations", summary.parameters, summary.flops);
#pragma once

#include <string>
#include <vector>

#include "artel/nn/model.h"

namespace artel::nn {

// One op of the network. Rows are in execution order.
struct SummaryRow {
  std::string layer;  // "layer1.0.conv1"
  std::string op;     // "conv2d"
  Shape output;
  int64_t parameters = 0;  // trained elements not counted in an earlier row
  double flops = 0;        // of the forward pass; a multiply-add counts as two
};

struct Summary {
  std::vector<SummaryRow> rows;
  int64_t parameters = 0;
  int64_t states = 0;  // untrained elements, such as running statistics
  double flops = 0;
};

// The summary of the forward pass in training for inputs `x`, including the batch axis.
Summary summarise(const Model& model, const TensorType& x);

// Floating-point operations of all nodes. For a graph of training_graph: of a training step.
double graph_flops(const Graph& graph);

}  // namespace artel::nn
