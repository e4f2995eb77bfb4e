// The weights of a GGUF file, with rows in the order that the zoo's networks use.
#pragma once

#include "artel/tensor/gguf.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

enum class GgufForm {
  numbers,   // expand all tensors
  quantised  // keep quantised matrices (tensor/quantised.h)
};

// Tensors keep the file's names. Files of the architecture "llama" interleave the rows of each
// query and key head, so that the two elements of a rotary pair are adjacent. This function undoes
// it: the elements of a pair are half a head apart, as in other published files.
NamedTensors gguf_weights(const Gguf& file, GgufForm form = GgufForm::numbers);

}  // namespace artel::checkpoint
