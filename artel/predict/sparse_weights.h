// Compact storage of weights with many zeros.
//
// The weight `W` becomes the tensors `W.nonzero` (u8, one bit per element, lowest bit first),
// `W.values` (f32, the nonzero elements in order), and `W.extents` (i64, the shape). With 90 %
// zeros this takes about a seventh of the bytes.
#pragma once

#include "artel/tensor/named_tensor.h"

namespace artel {

// Stores f32 tensors in this form if that is shorter. Keeps all others unchanged.
NamedTensors without_zeros(const NamedTensors& tensors);
// The inverse. Throws an Error of kind corrupt that names the tensor if its parts do not match.
NamedTensors with_zeros(const NamedTensors& tensors);

}  // namespace artel
