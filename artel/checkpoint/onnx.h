// The weights (initialisers) of an ONNX model. The graph is ignored.
#pragma once

#include <filesystem>

#include "artel/base/bytes.h"
#include "artel/checkpoint/tfjs.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// Heuristic: the format has no signature, but a model begins with its version.
bool is_onnx(const Bytes& bytes);

// The tensors in the order of the file. Tensors stored as raw bytes are views where aligned. `open`
// opens the external files that the model names for large tensors; names that lead out of the
// folder are refused first. Throws an Error of kind corrupt for a broken file, and of kind
// unsupported for element types without a DType.
NamedTensors parse_onnx(const Bytes& bytes, const OpenFile& open);

// Reads a model whose external files are in its folder.
NamedTensors read_onnx(const std::filesystem::path& path);

}  // namespace artel::checkpoint
