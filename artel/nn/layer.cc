#include "artel/nn/layer.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel::nn {

void Build::keep(const std::string& name, Value value) {
  require(!name.empty() && kept_.emplace(name, value).second, ErrorKind::invalid_argument,
          "[layer '{}'] the name '{}' of a value is taken already; try another one", graph_.scope(),
          name);
}

Value Build::kept(const std::string& name) const {
  const auto found = kept_.find(name);
  if (found != kept_.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, value] : kept_) names.push_back(known);
  fail(ErrorKind::invalid_argument, "[layer '{}'] unknown value '{}'{}; known: {}", graph_.scope(),
       name, did_you_mean(name, names), join(names, ", "));
}

void Build::require_whole_text(std::string_view layer) {
  require(!places_, ErrorKind::unsupported,
          "[layer '{}'] {}: this layer cannot read a text piece by piece", graph_.scope(), layer);
}

Value Build::parameter(std::string_view name, Shape shape, Initialiser initialiser) {
  const auto existing = sharing_ > 0 ? graph_.find(graph_.scoped(name)) : std::nullopt;
  if (existing) {
    require(graph_.type(*existing).shape == shape, ErrorKind::shape,
            "[layer '{}'] {}: got the shape {} where it is shared, expected {} as at its first use",
            graph_.scope(), name, to_string(shape), to_string(graph_.type(*existing).shape));
    return graph_.handle(*existing);
  }
  const Value value = graph_.parameter(name, std::move(shape));
  initialisers_[graph_.value(value.id()).name] = std::move(initialiser);
  return value;
}

Value Build::state(std::string_view name, Shape shape, float initial) {
  require(sharing_ == 0, ErrorKind::unsupported,
          "[layer '{}'] a layer with states, such as batch_norm, cannot be shared; try layer_norm",
          graph_.scope());
  const Value value = graph_.state(name, std::move(shape));
  initialisers_[graph_.value(value.id()).name] = [initial](Random&, const Shape&,
                                                           std::span<float> values) {
    std::fill(values.begin(), values.end(), initial);
  };
  return value;
}

Value Layer::operator()(Build& build, Value x) const {
  const Value y = build_(build, x);
  require(static_cast<bool>(y), ErrorKind::invalid_argument,
          "[layer '{}'] {}: returned an empty value, expected its output", build.graph().scoped(""),
          kind_);
  return y;
}

void initialise(uint64_t seed, const std::string& name, const Shape& shape,
                const Initialiser& initialiser, std::span<float> values) {
  Random random{seed, hash_name("initialise"), hash_name(name)};
  initialiser(random, shape, values);
}

Tensor initial_value(uint64_t seed, const std::string& name, const Shape& shape,
                     const Initialiser& initialiser) {
  Tensor tensor(shape);
  initialise(seed, name, shape, initialiser, tensor.values<float>());
  return tensor;
}

}  // namespace artel::nn
