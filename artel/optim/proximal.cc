#include "artel/optim/proximal.h"

#include <algorithm>
#include <cmath>

namespace artel::optim {

// Branch-free, so that compilers vectorise it: x minus its projection on [-l1, l1].
void prox_elastic_net(std::span<float> x, float l1, float l2) {
  const float shrink = 1 / (1 + l2);
  for (float& value : x) value = (value - std::clamp(value, -l1, l1)) * shrink;
}

void prox_group(std::span<float> x, float weight) {
  double squares = 0;
  for (const float value : x) squares += static_cast<double>(value) * value;
  const double norm = std::sqrt(squares);
  const float keep = norm > weight ? static_cast<float>(1 - weight / norm) : 0;
  for (float& value : x) value *= keep;
}

}  // namespace artel::optim
