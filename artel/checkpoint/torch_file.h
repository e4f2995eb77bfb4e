// PyTorch's .pt and .pth files, read without Python and without executing anything in them.
#pragma once

#include <filesystem>

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// Whether the bytes start like a legacy (non-zip) file.
bool is_legacy_torch(const Bytes& bytes);

enum class TorchPart {
  all,
  // From a checkpoint that also holds an optimizer or the like, take only what lies under the
  // top-level key "state_dict", "model_state_dict" or "model"; without the prefix "module." of a
  // parallel wrapper.
  model,
};

// The tensors of a file, zip or legacy, under the path of keys that leads to them, joined by dots
// ("state_dict.fc.weight", "layers.0"); a lone tensor is called "tensor". Tensors that share a
// storage share memory where they are dense; others (transposed, sliced) are copied. Numbers, text
// and empty containers are skipped.
//
// Throws an Error of kind corrupt for a broken file, and of kind unsupported, naming the offending
// object, for one that holds anything but tensors and plain containers.
NamedTensors parse_torch(const Bytes& bytes, TorchPart part = TorchPart::all);
NamedTensors read_torch(const std::filesystem::path& path, TorchPart part = TorchPart::all);

}  // namespace artel::checkpoint
