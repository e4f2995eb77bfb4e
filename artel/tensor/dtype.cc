#include "artel/tensor/dtype.h"

#include <array>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "artel/base/bfloat16.h"
#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel {
namespace {

struct Entry {
  DType type;
  std::string_view name;
  size_t size;
};

constexpr std::array<Entry, 10> kTypes = {{{DType::f32, "f32", 4},
                                           {DType::f64, "f64", 8},
                                           {DType::f16, "f16", 2},
                                           {DType::bf16, "bf16", 2},
                                           {DType::i8, "i8", 1},
                                           {DType::u8, "u8", 1},
                                           {DType::i16, "i16", 2},
                                           {DType::i32, "i32", 4},
                                           {DType::i64, "i64", 8},
                                           {DType::boolean, "bool", 1}}};

}  // namespace

size_t size_of(DType type) { return kTypes[static_cast<size_t>(type)].size; }

std::string_view to_string(DType type) { return kTypes[static_cast<size_t>(type)].name; }

DType dtype_from_string(std::string_view name) {
  std::vector<std::string> names;
  for (const Entry& entry : kTypes) {
    if (entry.name == name) return entry.type;
    names.emplace_back(entry.name);
  }
  fail(ErrorKind::invalid_argument, "unknown element type '{}'{}", name, did_you_mean(name, names));
}

bool is_floating(DType type) {
  return type == DType::f32 || type == DType::f64 || type == DType::f16 || type == DType::bf16;
}

uint16_t float_to_half(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000u);
  const uint32_t magnitude = bits & 0x7fffffffu;
  if (magnitude > 0x7f800000u) return sign | 0x7e00u;
  if (magnitude >= 0x477ff000u) return sign | 0x7c00u;  // rounds to 65536 or more
  if (magnitude < 0x38800000u) {
    // Subnormal in half precision: adding 0.5 lets the hardware round at the right bit.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return sign | static_cast<uint16_t>(std::bit_cast<uint32_t>(shifted) - 0x3f000000u);
  }
  const uint32_t rounded = magnitude + 0xc8000fffu + ((magnitude >> 13) & 1u);
  return sign | static_cast<uint16_t>(rounded >> 13);
}

float half_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu;
  const uint32_t fraction = bits & 0x3ffu;
  if (exponent == 0x1fu) return std::bit_cast<float>(sign | 0x7f800000u | fraction << 13);
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return sign ? -magnitude : magnitude;
  }
  return std::bit_cast<float>(sign | (exponent + 112u) << 23 | fraction << 13);
}

uint16_t float_to_bfloat16(float value) { return bf16_of(value); }

float bfloat16_to_float(uint16_t bits) { return float_of_bf16(bits); }

}  // namespace artel
