// Reader of PyTorch .pt and .pth files. Needs no Python and executes no code from the file.
#pragma once

#include <filesystem>

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// True if the bytes start like a legacy (non-zip) file.
bool is_legacy_torch(const Bytes& bytes);

enum class TorchPart {
  all,
  // Only the model of a checkpoint: the entries below the top-level key "state_dict",
  // "model_state_dict", or "model", without the prefix "module." of a parallel wrapper.
  model,
};

// The tensors of a zip or legacy file, named by their path of keys joined by dots
// ("state_dict.fc.weight", "layers.0"). A lone tensor is named "tensor". Dense tensors share the
// memory of their storage; others (transposed, sliced) are copied. Numbers, text, and empty
// containers are skipped.
//
// Throws an Error of kind corrupt for a broken file. Throws an Error of kind unsupported that names
// the offending object if the file contains anything but tensors and plain containers.
NamedTensors parse_torch(const Bytes& bytes, TorchPart part = TorchPart::all);
NamedTensors read_torch(const std::filesystem::path& path, TorchPart part = TorchPart::all);

}  // namespace artel::checkpoint
