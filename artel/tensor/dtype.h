// Element types, and the two 16-bit floating-point formats that C++20 lacks.
//
//   const size_t bytes = 100 * size_of(artel::DType::bf16);                         // 200
//   const float rounded = artel::bfloat16_to_float(artel::float_to_bfloat16(0.1f));  // 0.10009766
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace artel {

enum class DType : uint8_t { f32, f64, f16, bf16, i8, u8, i16, i32, i64, boolean };

size_t size_of(DType type);
// "f32", "bf16", ...; used in files and messages.
std::string_view to_string(DType type);
// Throws for an unknown name.
DType dtype_from_string(std::string_view name);
bool is_floating(DType type);

// Conversions round to nearest, ties to even, and preserve NaN.
uint16_t float_to_half(float value);
float half_to_float(uint16_t bits);
uint16_t float_to_bfloat16(float value);
float bfloat16_to_float(uint16_t bits);

template <typename T>
struct DTypeOf;
template <>
struct DTypeOf<float> {
  static constexpr DType value = DType::f32;
};
template <>
struct DTypeOf<double> {
  static constexpr DType value = DType::f64;
};
template <>
struct DTypeOf<int8_t> {
  static constexpr DType value = DType::i8;
};
template <>
struct DTypeOf<uint8_t> {
  static constexpr DType value = DType::u8;
};
template <>
struct DTypeOf<int16_t> {
  static constexpr DType value = DType::i16;
};
template <>
struct DTypeOf<int32_t> {
  static constexpr DType value = DType::i32;
};
template <>
struct DTypeOf<int64_t> {
  static constexpr DType value = DType::i64;
};

}  // namespace artel
