// Recurrent layers on sequences [batch, positions, width]. Names, shapes, equations, and the order
// of gates match PyTorch's nn.LSTM and nn.GRU with batch_first, so their weights fit: weight_ih_l0,
// weight_hh_l0, bias_ih_l0, bias_hh_l0, with _reverse for the reverse direction.
//
//   // Texts of different lengths, padded with token 0, in two classes.
//   const artel::Model reader = artel::nn::sequential(
//       {artel::nn::embedding(5000, 64),
//        artel::nn::lstm(128, {.bidirectional = true, .last = true, .mask = "x"}),
//        artel::nn::dense(2)});
#pragma once

#include <string>

#include "artel/nn/layer.h"

namespace artel::nn {

struct RecurrentOptions {
  int64_t layers = 1;          // number of stacked layers
  bool bidirectional = false;  // adds a reverse direction to each layer
  bool last = false;           // returns only the final state, [batch, width]
  bool bias = true;
  double dropout = 0;  // between layers, in training
  // The name of a stored value [batch, positions] (nn/named_values.h) that is 0 at padding, such as
  // the tokens. The state does not change at padding. Empty means no padding.
  std::string mask = {};
};

// [batch, positions, units], or 2 * units if bidirectional: forward, then reverse.
Layer lstm(int64_t units, RecurrentOptions options = {});
Layer gru(int64_t units, RecurrentOptions options = {});

// Makes all recurrent layers in it bidirectional, with the names and bits of the option. A custom
// layer is recurrent if it checks Build::both_ways. Building it throws if it contains no recurrent
// layer.
Layer bidirectional(Layer layer);

}  // namespace artel::nn
