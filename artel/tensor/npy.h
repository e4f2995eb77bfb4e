// NumPy's files: NPY holds one array, NPZ a zip archive of them.
#pragma once

#include <filesystem>
#include <string>

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

bool is_npy(const Bytes& bytes);

// Tensors are views of the bytes where layout, byte order and alignment allow; arrays in Fortran
// order come out row-major. Throws an Error of kind corrupt that names file and offset, or of kind
// unsupported for an element type that Artel does not have (objects, text, complex numbers).
Tensor parse_npy(const Bytes& bytes);
NamedTensors parse_npz(const Bytes& bytes);

Tensor read_npy(const std::filesystem::path& path);
NamedTensors read_npz(const std::filesystem::path& path);

// What precedes the elements of an array in an NPY file. Throws for bf16, which NumPy does not
// have.
std::string npy_header(DType type, const Shape& shape);

// Written atomically. NumPy has no bf16, so bf16 is written as f32.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);
void write_npz(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace artel
