// GPT-2 (Radford et al., 2019) with the names of its published checkpoint: wte, wpe,
// h.0.attn.c_attn, ..., ln_f. Weights of dense layers are stored [in, out]; the table of tokens is
// also the last layer, unless that is untied: lm_head.
//
//   const artel::Model gpt =
//       artel::nn::gpt2({.positions = 256, .width = 128, .depth = 4, .heads = 4});
#pragma once

#include "artel/nn/layer.h"
#include "artel/nn/zoo/names.h"

namespace artel::nn {

struct Gpt2Options {
  int64_t vocabulary = 50257;
  int64_t positions = 1024;  // the most that a sample can have
  int64_t width = 768;
  int64_t depth = 12;
  int64_t heads = 12;
  int64_t hidden = 0;  // of feed-forward networks; 0: four times the width
  std::string activation = "gelu_tanh";
  double epsilon = 1e-5;  // of layer norms
  bool untied_head = false;
  // Applied to embeddings, attention probabilities and each branch before it is added.
  double dropout = 0;
};

// Tokens i32 [batch, positions] to logits [batch, positions, vocabulary] of the next token.
Layer gpt2(const Gpt2Options& options = {});

// Other names of these weights in published files.
NameRules gpt2_names();

}  // namespace artel::nn
