// Llama (Touvron et al., 2023) and similar networks such as SmolLM2: RMS norms, rotary positions,
// grouped heads, SwiGLU, no biases. Parameter names are those of published checkpoints:
// model.embed_tokens, model.layers.0.self_attn.q_proj, ..., model.norm, lm_head.
//
//   const artel::Model small = artel::nn::llama(
//       {.vocabulary = 512, .positions = 256, .width = 64, .depth = 2, .heads = 4, .key_heads =
//       2});
#pragma once

#include "artel/nn/layer.h"
#include "artel/nn/zoo/names.h"

namespace artel::nn {

// The defaults are those of SmolLM2-135M.
struct LlamaOptions {
  int64_t vocabulary = 49152;
  int64_t positions = 8192;  // maximum length of a sample
  int64_t width = 576;
  int64_t depth = 30;
  int64_t heads = 9;
  int64_t key_heads =
      3;  // groups of heads / key_heads heads share keys and values; 0 means `heads`
  int64_t hidden = 1536;            // width of the feed-forward networks
  std::string activation = "silu";  // activation of the feed-forward gates
  double epsilon = 1e-5;            // epsilon of the RMS norms
  double rotary_base = 100000;
  bool untied_head = false;
  int64_t classes = 0;  // if not 0, classifies texts from the last position
  double dropout = 0;   // on attention probabilities and before each residual addition
};

// Maps tokens i32 [batch, positions] to next-token logits [batch, positions, vocabulary], or to
// class logits [batch, classes].
Layer llama(const LlamaOptions& options = {});

// Rules for the names of these weights in other published files, including GGUF.
NameRules llama_names();

}  // namespace artel::nn
