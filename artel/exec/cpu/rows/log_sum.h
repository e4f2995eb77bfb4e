// The logarithm of a sum of exponentials, from which probabilities are had again.
#pragma once

#include <cstdint>

namespace artel::kernels {

// log(sum(exp(x))) = largest + rest, kept apart: their sum would be rounded as coarsely as the
// largest x, and with it every exp(x - sum). Saved as two floats for each row.
struct LogSum {
  float largest, rest;

  static LogSum load(const float* saved, int64_t row) {
    return {saved[2 * row], saved[2 * row + 1]};
  }
  void save(float* saved, int64_t row) const {
    saved[2 * row] = largest;
    saved[2 * row + 1] = rest;
  }
};

}  // namespace artel::kernels
