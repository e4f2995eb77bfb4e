// The safetensors format: an 8-byte length, a JSON header with type, shape, and offsets of each
// tensor, and the tensors' bytes without gaps. Compatible with the Python package `safetensors` in
// both directions.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "artel/base/bytes.h"
#include "artel/base/checksum.h"
#include "artel/tensor/named_tensor.h"
#include "artel/tensor/tensor_source.h"

namespace artel::checkpoint {

// Free text stored under the key "__metadata__".
using Metadata = std::map<std::string, std::string>;

struct Safetensors {
  NamedTensors tensors;  // in the order of their bytes
  Metadata metadata;
};

// Tensors are views of the bytes where aligned. Throws an Error of kind corrupt for a header that
// is too long, malformed, or inconsistent (including overlaps and gaps), and of kind unsupported
// for element types without a DType.
Safetensors parse_safetensors(const Bytes& bytes);

// Maps the file. Bytes are read on first use, and dropping a tensor releases its pages.
Safetensors read_safetensors(const std::filesystem::path& path);

// Writes atomically and piece by piece, wide element types first, so that every tensor is aligned
// for its type. Names must be unique. Returns the size and checksum of the file.
FileSummary write_safetensors(const std::filesystem::path& path,
                              const std::vector<TensorSource>& tensors,
                              const Metadata& metadata = {});
FileSummary write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                              const Metadata& metadata = {});

}  // namespace artel::checkpoint
