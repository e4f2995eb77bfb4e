// The format of bf16 and of the values in top-k: the upper half of a float.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>

namespace artel::comm {

// Rounded to nearest even; a finite value stays finite.
inline uint16_t brain_float_of(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t odd = (magnitude >> 16) & 1u;
  const uint32_t rounded = std::min((magnitude + 0x7fffu + odd) >> 16, uint32_t{0x7f7f});
  const uint32_t special = magnitude > 0x7f800000u ? 0x7fc0u : 0x7f80u;
  return static_cast<uint16_t>((magnitude < 0x7f800000u ? rounded : special) |
                               (bits & 0x80000000u) >> 16);
}

inline float float_of_brain_float(uint16_t half) {
  return std::bit_cast<float>(uint32_t{half} << 16);
}

}  // namespace artel::comm
