// Rectangular parts of NHWC images, with a border of zeros.
#pragma once

#include <algorithm>
#include <cstdint>

namespace artel::kernels {

// Rows [first_row, first_row + rows) and columns [first_column, ...) of an image, zeros outside it.
struct Window {
  int64_t first_row, rows, first_column, columns;
};

inline void copy_window(const float* image, int64_t height, int64_t width, int64_t channels,
                        const Window& window, float* out) {
  const int64_t left = std::clamp<int64_t>(-window.first_column, 0, window.columns);
  const int64_t right = std::clamp(width - window.first_column, left, window.columns);
  for (int64_t i = 0; i < window.rows; ++i, out += window.columns * channels) {
    const int64_t row = window.first_row + i;
    float* const end = out + window.columns * channels;
    if (row < 0 || row >= height) {
      std::fill(out, end, 0.f);
      continue;
    }
    const float* in = image + (row * width + window.first_column + left) * channels;
    std::fill(out, out + left * channels, 0.f);
    std::copy_n(in, (right - left) * channels, out + left * channels);
    std::fill(out + right * channels, end, 0.f);
  }
}

}  // namespace artel::kernels
