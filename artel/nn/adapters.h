// Low-rank adapters (LoRA, Hu et al., 2021): beside each dense layer with a frozen weight W, two
// small matrices are trained, and the layer computes W x + scale B A x. B begins with zeros, so
// that the network begins as it was.
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

// "lora RANK [ALPHA]"; ALPHA is twice the rank unless given. Throws for other text.
AdapterOptions parse_adapters(std::string_view text);

// The network with an adapter beside each dense layer on more than one position, as in the blocks
// of transformers. Throws when it is built if there are none, and where a text is read piece by
// piece: merge the adapters first.
Model with_adapters(const Model& model, const AdapterOptions& options);

// The weights of the network without adapters that computes the same: W + scale B A. `in_out` is
// whether weights are stored [in, out]; found by their shapes if these are not square.
NamedTensors merge_adapters(const NamedTensors& weights, const AdapterOptions& options,
                            bool in_out = false);

}  // namespace artel::nn
