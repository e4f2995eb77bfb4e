// The safetensors format: eight bytes with the length of a JSON header, the header with type, shape
// and place of each tensor, then the tensors' bytes without gaps. Compatible in both directions
// with the Python package of that name.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "artel/base/bytes.h"
#include "artel/base/checksum.h"
#include "artel/tensor/named_tensor.h"
#include "artel/tensor/tensor_source.h"

namespace artel::checkpoint {

// Free text that travels with the tensors, under the key "__metadata__".
using Metadata = std::map<std::string, std::string>;

struct Safetensors {
  NamedTensors tensors;  // in the order of their bytes
  Metadata metadata;
};

// Tensors are views of the bytes where these are aligned. Throws an Error of kind corrupt for a
// header that is too long, malformed or inconsistent (overlaps and gaps included), and of kind
// unsupported for an element type that Artel does not have.
Safetensors parse_safetensors(const Bytes& bytes);

// Maps the file: bytes are read only when they are used, and those of a tensor that is dropped take
// no memory any more.
Safetensors read_safetensors(const std::filesystem::path& path);

// Written atomically and piece by piece, wide element types first, so every tensor is aligned for
// its type. Names must be unique. Returns what was written.
FileSummary write_safetensors(const std::filesystem::path& path,
                              const std::vector<TensorSource>& tensors,
                              const Metadata& metadata = {});
FileSummary write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                              const Metadata& metadata = {});

}  // namespace artel::checkpoint
