// GPT-2 (Radford et al., 2019) with the names of its published checkpoint: wte, wpe,
// h.0.attn.c_attn, ..., ln_f. Dense weights are stored [in, out]. The token table is also the last
// layer, unless untied: lm_head.
//
//   const artel::Model gpt =
//       artel::nn::gpt2({.positions = 256, .width = 128, .depth = 4, .heads = 4});
#pragma once

#include "artel/nn/layer.h"
#include "artel/nn/zoo/names.h"

namespace artel::nn {

struct Gpt2Options {
  int64_t vocabulary = 50257;
  int64_t positions = 1024;  // maximum length of a sample
  int64_t width = 768;
  int64_t depth = 12;
  int64_t heads = 12;
  int64_t hidden = 0;  // units of feed-forward networks; 0 means 4 * width
  std::string activation = "gelu_tanh";
  double epsilon = 1e-5;  // of layer norms
  bool untied_head = false;
  int64_t classes = 0;  // above 0: scores of classes from the last position instead of tokens
  // Applied to embeddings, attention probabilities, and the output of each residual branch.
  double dropout = 0;
};

// Tokens i32 [batch, positions] to logits [batch, positions, vocabulary] of the next token, or to
// logits [batch, classes].
Layer gpt2(const Gpt2Options& options = {});

// Other names of these weights in published files.
NameRules gpt2_names();

}  // namespace artel::nn
