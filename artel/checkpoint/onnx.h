// The weights of an ONNX model: its initialisers. The graph itself is not read.
#pragma once

#include <filesystem>

#include "artel/base/bytes.h"
#include "artel/checkpoint/tfjs.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// Whether this looks like one: the format has no signature, but a model begins with its version.
bool is_onnx(const Bytes& bytes);

// In the order of the file. Tensors that are stored as raw bytes are views of them where they are
// aligned. `open` gives files that hold the bytes of large tensors, named in the model; names that
// lead out of a folder are refused before. Throws an Error of kind corrupt for a broken file, and
// of kind unsupported for an element type that Artel does not have.
NamedTensors parse_onnx(const Bytes& bytes, const OpenFile& open);

// The same for a file with the others beside it.
NamedTensors read_onnx(const std::filesystem::path& path);

}  // namespace artel::checkpoint
