// PyTorch's .pt and .pth files, read without Python and without running anything they say.
#pragma once

#include <filesystem>

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// Whether the bytes start as a legacy (non-zip) file does.
bool is_legacy_torch(const Bytes& bytes);

enum class TorchPart {
  all,
  // Of a checkpoint that also holds an optimizer or the like, only what lies below the top-level
  // key "state_dict", "model_state_dict" or "model"; without the prefix "module." of a parallel
  // wrapper.
  model,
};

// The tensors of a file, zip or legacy, under the path of keys that leads to them, joined by dots
// ("state_dict.fc.weight", "layers.0"); a lone tensor is called "tensor". Tensors that share a
// storage share memory where they are dense; others (transposed, sliced) are copied. Numbers, text
// and empty containers are passed over.
//
// Throws an Error of kind corrupt for a broken file, and of kind unsupported, naming the culprit,
// for one that holds anything but tensors and plain containers.
NamedTensors parse_torch(const Bytes& bytes, TorchPart part = TorchPart::all);
NamedTensors read_torch(const std::filesystem::path& path, TorchPart part = TorchPart::all);

}  // namespace artel::checkpoint
