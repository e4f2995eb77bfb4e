// What a network consists of and what it costs, for people.
#pragma once

#include <string>
#include <vector>

#include "artel/nn/model.h"

namespace artel::nn {

// One op of the network, in the order in which they run.
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

// Of the forward pass in training, for inputs `x` (the batch included).
Summary summarise(const Model& model, const TensorType& x);

// Of all nodes: with a graph of training_graph, the operations of a training step.
double graph_flops(const Graph& graph);

}  // namespace artel::nn
