// NumPy files: NPY holds one array, NPZ a zip archive of arrays.
#pragma once

#include <filesystem>
#include <string>

#include "artel/base/bytes.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

bool is_npy(const Bytes& bytes);

// Tensors are views of the bytes where layout, byte order, and alignment allow. Arrays in Fortran
// order are converted to row-major order. Throws an Error of kind corrupt with file and offset, or
// of kind unsupported for element types without a DType (objects, text, complex numbers).
Tensor parse_npy(const Bytes& bytes);
NamedTensors parse_npz(const Bytes& bytes);

Tensor read_npy(const std::filesystem::path& path);
NamedTensors read_npz(const std::filesystem::path& path);

// The header of an NPY file. Throws for bf16, which NumPy does not have.
std::string npy_header(DType type, const Shape& shape);

// Writes atomically. Converts bf16 to f32, because NumPy has no bf16.
void write_npy(const std::filesystem::path& path, const Tensor& tensor);
void write_npz(const std::filesystem::path& path, const NamedTensors& tensors);

}  // namespace artel
