#include "artel/optim/clipping.h"

#include <cmath>

#include "artel/base/error.h"
#include "artel/optim/kernels.h"

namespace artel::optim {

double sum_of_squares(ThreadPool& pool, std::span<const float> values) {
  return kernels::sum_of(squares_of_chunks(pool, values));
}

std::vector<double> squares_of_chunks(ThreadPool& pool, std::span<const float> values) {
  return kernels::for_chunks(pool, values.size(), [&](size_t begin, size_t count) {
    return kernels::squares(values.data() + begin, count, {});
  });
}

float clip_scale(double norm, double max_norm) {
  if (max_norm == 0) return 1;
  require(std::isfinite(norm), ErrorKind::numeric,
          "[clip_norm] the gradient's norm is {}, expected a finite number; set check_numbers = "
          "true to find the first op whose output is not finite",
          norm);
  // The small constant is PyTorch's, so both clip by the same factor.
  const double scale = max_norm / (norm + 1e-6);
  return scale < 1 ? static_cast<float>(scale) : 1.0f;
}

}  // namespace artel::optim
