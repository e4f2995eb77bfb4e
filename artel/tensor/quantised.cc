#include "artel/tensor/quantised.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "artel/base/error.h"

namespace artel {
namespace {

constexpr int64_t kHalf = kQuantisedBlock / 2;

float half_value(const Tensor& halves, int64_t i) {
  return half_to_float(reinterpret_cast<const uint16_t*>(halves.raw())[i]);
}

// Stores a number as f16 and returns the remainder.
float store_half(Tensor& halves, int64_t i, float value) {
  const uint16_t half = float_to_half(value);
  reinterpret_cast<uint16_t*>(halves.raw())[i] = half;
  return half_to_float(half);
}

struct Range {
  float low, high;
};

Range range_of(const float* x, int64_t count) {
  Range range = {x[0], x[0]};
  for (int64_t i = 0; i < count; ++i) {
    require(std::isfinite(x[i]), ErrorKind::invalid_argument,
            "cannot quantise {}: expected finite numbers", x[i]);
    range.low = std::min(range.low, x[i]);
    range.high = std::max(range.high, x[i]);
  }
  require(std::max(-range.low, range.high) < 60000, ErrorKind::invalid_argument,
          "cannot quantise numbers from {} to {}: expected less than 60000", range.low, range.high);
  return range;
}

int nearest_code(float value, float scale, int low, int high) {
  if (scale == 0) return std::clamp(0, low, high);
  return std::clamp(static_cast<int>(std::lround(value / scale)), low, high);
}

// The place of a 4-bit code in its row, and whether it is the high half of that byte.
struct Nibble {
  int64_t byte;
  bool high;

  explicit Nibble(int64_t column)
      : byte(column / kQuantisedBlock * kHalf + column % kHalf),
        high(column % kQuantisedBlock >= kHalf) {}
};

}  // namespace

bool can_quantise(const Shape& shape) {
  return shape.rank() == 2 && shape[0] > 0 && shape[1] > 0 && shape[1] % kQuantisedBlock == 0;
}

QuantisedMatrix quantise_rows(const Tensor& matrix, const QuantiseOptions& options) {
  require(can_quantise(matrix.shape()), ErrorKind::shape,
          "cannot quantise {}: expected a matrix whose columns are a multiple of {}",
          to_string(matrix.shape()), kQuantisedBlock);
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  const bool eight = options.bits == 8;
  const int64_t asked = options.group > 0 ? options.group : eight ? columns : kQuantisedBlock;
  require((eight || options.bits == 4) && asked % kQuantisedBlock == 0, ErrorKind::invalid_argument,
          "cannot quantise to {} bits in groups of {}: expected 8 or 4 bits, and groups of a "
          "multiple of {}",
          options.bits, asked, kQuantisedBlock);
  const int64_t group = columns % asked == 0 ? asked : kQuantisedBlock, groups = columns / group;
  const Tensor plain = matrix.to(DType::f32);
  QuantisedMatrix result;
  result.codes = Tensor({rows, eight ? columns : columns / 2}, eight ? DType::i8 : DType::u8);
  result.scales = Tensor({rows, groups}, DType::f16);
  if (!eight) result.offsets = Tensor({rows, groups}, DType::f16);
  for (int64_t g = 0; g < rows * groups; ++g) {
    const float* x = plain.values<float>().data() + g * group;
    const auto [low, high] = range_of(x, group);
    const int64_t row = g / groups, first = g % groups * group;
    if (eight) {
      const float scale = store_half(result.scales, g, std::max(-low, high) / 127);
      int8_t* codes = result.codes.values<int8_t>().data() + row * columns + first;
      for (int64_t i = 0; i < group; ++i)
        codes[i] = static_cast<int8_t>(nearest_code(x[i], scale, -127, 127));
      continue;
    }
    const float offset = store_half(result.offsets, g, low);
    const float scale = store_half(result.scales, g, (high - low) / 15);
    uint8_t* codes = result.codes.values<uint8_t>().data() + row * columns / 2;
    for (int64_t i = 0; i < group; ++i) {
      const Nibble place(first + i);
      const int code = nearest_code(x[i] - offset, scale, 0, 15);
      codes[place.byte] |= static_cast<uint8_t>(place.high ? code << 4 : code);
    }
  }
  return result;
}

Tensor expand(const QuantisedMatrix& matrix) {
  const int64_t rows = matrix.rows(), columns = matrix.columns(), group = matrix.group();
  const int64_t groups = columns / group;
  Tensor numbers({rows, columns});
  float* out = numbers.values<float>().data();
  const auto* codes = reinterpret_cast<const uint8_t*>(matrix.codes.raw());
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t c = 0; c < columns; ++c) {
      const int64_t g = row * groups + c / group;
      const float scale = half_value(matrix.scales, g);
      if (matrix.bits() == 8) {
        *out++ = scale * static_cast<float>(static_cast<int8_t>(codes[row * columns + c]));
        continue;
      }
      const Nibble place(c);
      const uint8_t both = codes[row * columns / 2 + place.byte];
      const int code = place.high ? both >> 4 : both & 15;
      *out++ = matrix.has_offsets()
                   ? scale * static_cast<float>(code) + half_value(matrix.offsets, g)
                   : scale * static_cast<float>(code - 8);
    }
  return matrix.turned ? transposed(numbers) : numbers;
}

Tensor transposed(const Tensor& matrix) {
  const int64_t rows = matrix.shape()[0], columns = matrix.shape()[1];
  Tensor result({columns, rows});
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      result.values<float>()[column * rows + row] = matrix.values<float>()[row * columns + column];
  return result;
}

std::optional<std::string> name_of_codes(std::string_view tensor) {
  for (const std::string_view suffix : {kTurnedCodes, kCodes})
    if (tensor.ends_with(suffix))
      return std::string(tensor.substr(0, tensor.size() - suffix.size()));
  return {};
}

void append(NamedTensors& tensors, const std::string& name, const QuantisedMatrix& matrix) {
  tensors.push_back({name + std::string(matrix.turned ? kTurnedCodes : kCodes), matrix.codes});
  tensors.push_back({name + std::string(kScales), matrix.scales});
  if (matrix.has_offsets()) tensors.push_back({name + std::string(kOffsets), matrix.offsets});
}

QuantisedMatrix find_quantised(const NamedTensors& tensors, const std::string& name) {
  const Tensor* const turned = find_tensor(tensors, name + std::string(kTurnedCodes));
  const Tensor* const codes = turned ? turned : find_tensor(tensors, name + std::string(kCodes));
  const Tensor* const scales = find_tensor(tensors, name + std::string(kScales));
  const Tensor* const offsets = find_tensor(tensors, name + std::string(kOffsets));
  const auto check = [&](bool fits, const char* what) {
    require(fits, ErrorKind::corrupt, "the quantised weight '{}': {}", name, what);
  };
  check(codes && scales, "its codes or its scales are missing");
  check(codes->shape().rank() == 2 && (codes->dtype() == DType::i8 || codes->dtype() == DType::u8),
        "expected codes i8 or u8 [rows, columns]");
  QuantisedMatrix matrix = {*codes, *scales, offsets ? *offsets : Tensor(), turned != nullptr};
  check(scales->dtype() == DType::f16 && scales->shape().rank() == 2 &&
            scales->shape()[0] == matrix.rows() && scales->shape()[1] > 0,
        "expected scales f16 [rows, groups]");
  check(can_quantise({matrix.rows(), matrix.columns()}) &&
            matrix.columns() % scales->shape()[1] == 0 && matrix.group() % kQuantisedBlock == 0,
        "its groups do not fit its columns");
  check(!offsets || (matrix.bits() == 4 && offsets->dtype() == DType::f16 &&
                     offsets->shape() == scales->shape()),
        "expected 4 bits and offsets f16 [rows, groups]");
  return matrix;
}

NamedTensors expand_all(const NamedTensors& tensors) {
  NamedTensors expanded;
  std::set<std::string> parts;  // of matrices
  for (const NamedTensor& each : tensors)
    if (const auto name = name_of_codes(each.name))
      parts.insert({*name + std::string(kScales), *name + std::string(kOffsets)});
  for (const NamedTensor& each : tensors) {
    if (const auto name = name_of_codes(each.name))
      expanded.push_back({*name, expand(find_quantised(tensors, *name))});
    else if (!parts.contains(each.name))
      expanded.push_back(each);
  }
  return expanded;
}

}  // namespace artel
