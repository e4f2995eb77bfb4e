// The safetensors format: eight bytes with the length of a JSON header, the header with type, shape
// and place of each tensor, then the tensors' bytes without gaps. Files are read by the Python
// package of that name, and its files are read here.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel::checkpoint {

// Free text that travels with the tensors, under the key "__metadata__".
using Metadata = std::map<std::string, std::string>;

struct Safetensors {
  NamedTensors tensors;  // in the order of their bytes
  Metadata metadata;
};

// Tensors are views of the bytes where these are aligned. Throws an Error of kind corrupt for a
// header that is too long, malformed or inconsistent (overlaps and gaps included), and of kind
// unsupported for an element type that Artel has not.
Safetensors parse_safetensors(const Bytes& bytes);

// Maps the file: nothing is read before it is used.
Safetensors read_safetensors(const std::filesystem::path& path);

// Written atomically, wide element types first, so that every tensor is aligned for its type. Names
// must be unique.
void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const Metadata& metadata = {});

}  // namespace artel::checkpoint
