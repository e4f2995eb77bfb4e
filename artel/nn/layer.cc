#include "artel/nn/layer.h"

#include <algorithm>

namespace artel::nn {

Value Build::parameter(std::string_view name, Shape shape, Initialiser initialiser) {
  const Value value = graph_.parameter(name, std::move(shape));
  initialisers_[graph_.value(value.id()).name] = std::move(initialiser);
  return value;
}

Value Build::state(std::string_view name, Shape shape, float initial) {
  const Value value = graph_.state(name, std::move(shape));
  initialisers_[graph_.value(value.id()).name] = [initial](Random&, const Shape&,
                                                           std::span<float> values) {
    std::fill(values.begin(), values.end(), initial);
  };
  return value;
}

Tensor initial_value(uint64_t seed, const std::string& name, const Shape& shape,
                     const Initialiser& initialiser) {
  Tensor tensor(shape);
  Random random{seed, hash_name("initialise"), hash_name(name)};
  initialiser(random, shape, tensor.values<float>());
  return tensor;
}

}  // namespace artel::nn
