#include "artel/nn/initialisers.h"

#include <algorithm>
#include <cmath>

namespace artel::nn {
namespace {

struct Fans {
  float in, out;
};

// Weights are [out, in, ...]; the extents after these multiply both.
Fans fans_of(const Shape& shape) {
  int64_t field = 1;
  for (int axis = 2; axis < shape.rank(); ++axis) field *= shape[axis];
  const int64_t in = shape.rank() > 1 ? shape[1] : shape.elements();
  const int64_t out = shape.rank() > 0 ? shape[0] : 1;
  return {static_cast<float>(std::max<int64_t>(1, in * field)),
          static_cast<float>(std::max<int64_t>(1, out * field))};
}

template <typename Draw>
Initialiser each(Draw draw) {
  return [draw](Random& random, const Shape& shape, std::span<float> values) {
    for (float& value : values) value = draw(random, shape);
  };
}

}  // namespace

Initialiser constant(float value) {
  return each([value](Random&, const Shape&) { return value; });
}

Initialiser uniform(float low, float high) {
  return each([=](Random& random, const Shape&) { return random.uniform(low, high); });
}

Initialiser normal(float deviation) {
  return each([=](Random& random, const Shape&) { return deviation * random.normal(); });
}

Initialiser truncated_normal(float deviation) {
  return each([=](Random& random, const Shape&) {
    float x = random.normal();
    while (std::fabs(x) > 2) x = random.normal();
    return deviation * x;
  });
}

Initialiser fan_in_uniform(int64_t fan_in) {
  return each([=](Random& random, const Shape& shape) {
    const float fan = fan_in > 0 ? static_cast<float>(fan_in) : fans_of(shape).in;
    const float bound = 1 / std::sqrt(fan);
    return random.uniform(-bound, bound);
  });
}

Initialiser he_normal_fan_out() {
  return each([](Random& random, const Shape& shape) {
    return std::sqrt(2 / fans_of(shape).out) * random.normal();
  });
}

Initialiser glorot_uniform() {
  return each([](Random& random, const Shape& shape) {
    const Fans fans = fans_of(shape);
    const float bound = std::sqrt(6 / (fans.in + fans.out));
    return random.uniform(-bound, bound);
  });
}

}  // namespace artel::nn
