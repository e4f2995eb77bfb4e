// Quantised matrices with 8 or 4 bits per element. Groups of consecutive elements in a row share a
// scale.
//
//   const artel::QuantisedMatrix small = artel::quantise_rows(images, {.bits = 4, .group = 32});
//   const artel::Tensor nearly = artel::expand(small);
//
// - 8 bits: an element is scale * code. Codes are i8 [rows, columns].
// - 4 bits: an element is scale * code + offset or, without offsets, scale * (code - 8). Codes from
//   0 to 15 are packed into u8 [rows, columns / 2]. In each block of 32 elements, byte j holds
//   element j in its low half and element j + 16 in its high half.
//
// Scales and offsets are f16 [rows, groups].
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "artel/tensor/named_tensor.h"
#include "artel/tensor/tensor.h"

namespace artel {

// The numbers of columns and of elements per group are multiples of this.
inline constexpr int64_t kQuantisedBlock = 32;

struct QuantisedMatrix {
  Tensor codes, scales;
  Tensor offsets = {};  // empty without offsets
  bool turned = false;  // this is the transpose of the weight, so groups run along its columns

  int bits() const { return codes.dtype() == DType::i8 ? 8 : 4; }
  int64_t rows() const { return codes.shape()[0]; }
  int64_t columns() const { return codes.shape()[1] * (bits() == 8 ? 1 : 2); }
  int64_t group() const { return columns() / scales.shape()[1]; }
  bool has_offsets() const { return offsets.elements() > 0; }
  size_t bytes() const { return codes.bytes() + scales.bytes() + offsets.bytes(); }
};

struct QuantiseOptions {
  int bits = 8;       // or 4, with offsets
  int64_t group = 0;  // elements that share a scale; 0 means a row with 8 bits, 32 with 4 bits
};

// True if the number of columns is a multiple of kQuantisedBlock.
bool can_quantise(const Shape& shape);
// Chooses scales that cover the range of each group. Throws if the matrix has another shape or
// numbers that are not finite.
QuantisedMatrix quantise_rows(const Tensor& matrix, const QuantiseOptions& options);
// The weight as f32 [rows, columns], or [columns, rows] if it is turned.
Tensor expand(const QuantisedMatrix& matrix);

// In files and parameters, the matrix "name" is stored as the tensors "name.codes" (or
// "name.turned_codes"), "name.scales", and optionally "name.offsets".
inline constexpr std::string_view kCodes = ".codes", kTurnedCodes = ".turned_codes",
                                  kScales = ".scales", kOffsets = ".offsets";
// Transposes an f32 matrix.
Tensor transposed(const Tensor& matrix);
// The name of the matrix if `tensor` is the name of a tensor of codes.
std::optional<std::string> name_of_codes(std::string_view tensor);
void append(NamedTensors& tensors, const std::string& name, const QuantisedMatrix& matrix);
// Finds a matrix by name. Throws an Error of kind corrupt if its tensors do not match.
QuantisedMatrix find_quantised(const NamedTensors& tensors, const std::string& name);
// Expands all quantised matrices to f32.
NamedTensors expand_all(const NamedTensors& tensors);

}  // namespace artel
