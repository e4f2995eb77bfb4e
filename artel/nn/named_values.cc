#include "artel/nn/named_values.h"

#include "artel/base/error.h"
#include "artel/graph/ops.h"
#include "artel/nn/layer_kinds.h"

namespace artel::nn {
namespace {

using Combine = Value (*)(Value, Value);

Layer combined(const char* kind, std::string name, Combine combine) {
  return {kind, [=, name = std::move(name)](Build& build, Value x) {
            const Value kept = build.kept(name);
            require(kept.shape() == x.shape(), ErrorKind::shape,
                    "[layer '{}'] {} {}: got {} and {}, expected equal shapes",
                    build.graph().scope(), kind, name, to_string(x.shape()),
                    to_string(kept.shape()));
            return combine(x, kept);
          }};
}

}  // namespace

Layer keep_as(std::string name) {
  return {"as", [name = std::move(name)](Build& build, Value x) {
            build.keep(name, x);
            return x;
          }};
}

Layer take_kept(std::string name) {
  return {"from", [name = std::move(name)](Build& build, Value) { return build.kept(name); }};
}

Layer add_kept(std::string name) { return combined("add", std::move(name), add); }
Layer subtract_kept(std::string name) { return combined("subtract", std::move(name), sub); }
Layer multiply_kept(std::string name) { return combined("multiply", std::move(name), mul); }

Layer concat_kept(std::string name, int64_t axis) {
  return {"concat", [=, name = std::move(name)](Build& build, Value x) {
            require(axis != 0 && axis != -static_cast<int64_t>(x.shape().rank()),
                    ErrorKind::invalid_argument,
                    "[layer '{}'] concat {}: got axis {}, which counts samples; expected another",
                    build.graph().scope(), name, axis);
            return concat({x, build.kept(name)}, axis);
          }};
}

Layer output(std::string name) {
  return {"output", [name = std::move(name)](Build& build, Value x) {
            require(!build.graph().has_output(name) && name != "prediction" && name != "loss",
                    ErrorKind::invalid_argument,
                    "[layer '{}'] output {}: this name is already in use; try another one",
                    build.graph().scope(), name);
            build.graph().set_output(name, x);
            return x;
          }};
}

Layer shared(Layer layer) {
  return {layer.kind(), [layer](Build& build, Value x) {
            const Build::Sharing sharing(build);
            return layer(build, x);
          }};
}

Layer split_inputs(std::vector<std::pair<std::string, Shape>> inputs, Layer network) {
  require(!inputs.empty(), ErrorKind::invalid_argument,
          "[inputs] got no inputs of the network, expected one or more");
  return {network.kind(), [inputs = std::move(inputs), network](Build& build, Value x) {
            int64_t elements = 0;
            for (const auto& [name, shape] : inputs) elements += shape.elements();
            require(x.shape() == Shape{x.shape()[0], elements}, ErrorKind::shape,
                    "[inputs] got samples {}, expected the {} elements of {} inputs side by side",
                    to_string(x.shape()), elements, inputs.size());
            int64_t begin = 0;
            std::vector<Value> parts;
            for (const auto& [name, shape] : inputs) {
              std::vector<int64_t> extents = {x.shape()[0]};
              extents.insert(extents.end(), shape.extents().begin(), shape.extents().end());
              const int64_t end = begin + shape.elements();
              parts.push_back(reshape(slice(x, 1, begin, end), Shape(std::move(extents))));
              begin = end;
            }
            for (size_t i = 0; i < parts.size(); ++i) build.set_input(inputs[i].first, parts[i]);
            return network(build, parts.front());
          }};
}

namespace {

constexpr int64_t kMostAxes = 8;

template <Layer (*make)(std::string)>
Layer parse_kept(LayerWords& words, int) {
  return make(words.name("the name of a value"));
}

Layer parse_concat(LayerWords& words, int) {
  std::string name = words.name("the name of a value");
  return concat_kept(std::move(name),
                     words.accept("axis") ? words.integer("axis", -kMostAxes, kMostAxes) : 1);
}

}  // namespace

std::vector<LayerKind> named_value_layers() {
  return {
      {"as", "NAME", parse_kept<keep_as>},
      {"from", "NAME", parse_kept<take_kept>},
      {"add", "NAME", parse_kept<add_kept>},
      {"subtract", "NAME", parse_kept<subtract_kept>},
      {"multiply", "NAME", parse_kept<multiply_kept>},
      {"concat", "NAME [axis AXIS]", parse_concat},
      {"output", "NAME", parse_kept<output>},
  };
}

}  // namespace artel::nn
