// bf16: the upper half of a float. It has the range of a float and 8 bits of precision.
//
//   const float rounded = artel::float_of_bf16(artel::bf16_of(0.1f));  // 0.10009766
#pragma once

#include <bit>
#include <cstdint>

namespace artel {

// Rounds to nearest, ties to even. A NaN becomes the quiet NaN of its sign.
inline uint16_t bf16_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  const uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<uint16_t>((nan ? (bits & 0x80000000u) | 0x7fc00000u : rounded) >> 16);
}

inline float float_of_bf16(uint16_t half) { return std::bit_cast<float>(uint32_t{half} << 16); }

// Like bf16_of, but a finite value stays finite.
inline uint16_t finite_bf16_of(float value) {
  const uint16_t rounded = bf16_of(value);
  const bool overflows =
      (rounded & 0x7fffu) == 0x7f80u && (std::bit_cast<uint32_t>(value) & 0xffffu) != 0;
  return static_cast<uint16_t>(rounded - (overflows ? 1 : 0));
}

}  // namespace artel
