// Low-rank adapters (LoRA, Hu et al., 2021). Each dense layer with a frozen weight W gets two small
// trained matrices and computes W x + scale B A x. B starts at zero, so the network starts
// unchanged.
//
// The adapter of the layer "h.0.mlp" has the parameters "lora.h.0.mlp.a" [rank, in] and
// "lora.h.0.mlp.b" [out, rank].
#pragma once

#include <string>
#include <string_view>

#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"

namespace artel::nn {

inline constexpr std::string_view kAdapterPrefix = "lora.";

struct AdapterOptions {
  int64_t rank = 8;
  double alpha = 16;  // scale = alpha / rank
  double scale() const { return alpha / static_cast<double>(rank); }
};

// Parses "lora RANK [ALPHA]". ALPHA defaults to twice the rank. Throws for other text.
AdapterOptions parse_adapters(std::string_view text);

// The network with an adapter for each dense layer that works on several positions, as in the
// blocks of transformers. Building it throws if it has no such layer, and for incremental decoding:
// merge the adapters first.
Model with_adapters(const Model& model, const AdapterOptions& options);

// The weights W + scale B A of the equivalent network without adapters. `in_out` is true if weights
// are stored [in, out]; detected from shapes that are not square.
NamedTensors merge_adapters(const NamedTensors& weights, const AdapterOptions& options,
                            bool in_out = false);

}  // namespace artel::nn
