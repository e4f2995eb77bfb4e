// Recurrent layers on sequences [batch, positions, width]. Names, shapes, equations and the order
// of gates are PyTorch's (nn.LSTM and nn.GRU with batch_first), so that their weights fit:
// weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, with _reverse for the way back.
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
  int64_t layers = 1;          // each reads the outputs of the one before
  bool bidirectional = false;  // a second one from the end to the beginning beside each layer
  bool last = false;           // only the state at the end of the way, [batch, width]
  bool bias = true;
  double dropout = 0;  // of the outputs of each layer but the last, in training
  // The name of a kept value [batch, positions] (nn/named_values.h) that is 0 at padding, such as
  // the tokens: the state stays as it is there. Empty: no padding.
  std::string mask = {};
};

// [batch, positions, units], twice as wide if bidirectional: the way there, then the way back.
Layer lstm(int64_t units, RecurrentOptions options = {});
Layer gru(int64_t units, RecurrentOptions options = {});

// All recurrent layers in it go both ways, as with the option: the same names and bits. Those of
// your own are recurrent if they ask Build::both_ways. Throws when built if there is none.
Layer bidirectional(Layer layer);

}  // namespace artel::nn
