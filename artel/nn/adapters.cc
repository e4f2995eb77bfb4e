#include "artel/nn/adapters.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/nn/graph_copier.h"
#include "artel/nn/initialisers.h"

namespace artel::nn {
namespace {

constexpr std::string_view kWeight = ".weight";

// Not a table of tokens, which the head of a language model shares: merged, it would change both.
bool is_adapted(const Graph& graph, const Node& node) {
  if (node.op->name != "dense" || graph.type(node.inputs[0]).shape.rank() < 3) return false;
  const ValueId id = node.inputs[1];
  int64_t readers = 0;
  for (const Node& each : graph.nodes()) readers += std::ranges::count(each.inputs, id);
  const ValueData& weight = graph.value(id);
  return readers == 1 && weight.kind == ValueKind::parameter && weight.name.ends_with(kWeight) &&
         weight.name.size() > kWeight.size();
}

}  // namespace

AdapterOptions parse_adapters(std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& word : split(text, ' '))
    if (!word.empty()) words.push_back(word);
  std::vector<double> numbers;
  for (size_t i = 1; i < words.size(); ++i) {
    char* end = nullptr;
    numbers.push_back(std::strtod(words[i].c_str(), &end));
    if (*end != 0) numbers.clear();
  }
  const bool right = !words.empty() && words[0] == "lora" && numbers.size() + 1 == words.size() &&
                     !numbers.empty() && numbers.size() <= 2;
  require(right && numbers[0] >= 1 && numbers[0] <= 4096 && numbers[0] == std::floor(numbers[0]) &&
              numbers.back() > 0,
          ErrorKind::invalid_argument,
          "model.adapters: got \"{}\", expected \"lora RANK [ALPHA]\" with a rank from 1 to 4096",
          text);
  return {.rank = static_cast<int64_t>(numbers[0]),
          .alpha = numbers.size() > 1 ? numbers[1] : 2 * numbers[0]};
}

Model with_adapters(const Model& model, const AdapterOptions& options) {
  return Layer("adapters", [=](Build& build, Value x) {
    build.require_whole_text("adapters");
    BuiltNetwork whole;
    build_aside(
        model, x.type(), build.training(),
        [&](const std::string& name) { return build.trains(name); }, whole);
    int adapted = 0;
    GraphCopier copier(
        whole, build, [&](const Node& node, const std::vector<Value>& inputs, Value y) {
          if (!is_adapted(whole.graph, node)) return y;
          ++adapted;
          const std::string& weight = whole.graph.value(node.inputs[1]).name;
          const std::string name =
              fmt::format("{}{}", kAdapterPrefix,
                          std::string_view(weight).substr(0, weight.size() - kWeight.size()));
          const int64_t in = inputs[0].shape().back(), out = y.shape().back();
          const Value a = build.parameter(name + ".a", {options.rank, in}, fan_in_uniform(in));
          const Value b = build.parameter(name + ".b", {out, options.rank}, constant(0));
          const Graph::Scope scope(build.graph(), name);
          return add(y, mul_scalar(artel::dense(artel::dense(inputs[0], a), b), options.scale()));
        });
    copier.give(whole.input, x);
    const Value prediction = copier.copy(whole.prediction);
    require(adapted > 0, ErrorKind::unsupported,
            "model.adapters: the network has no dense layer on several positions, as transformers "
            "have; leave it out");
    return prediction;
  });
}

NamedTensors merge_adapters(const NamedTensors& weights, const AdapterOptions& options,
                            bool in_out) {
  NamedTensors merged;
  for (const NamedTensor& each : weights)
    if (!each.name.starts_with(kAdapterPrefix)) merged.push_back(each);
  for (const NamedTensor& a : weights) {
    if (!a.name.starts_with(kAdapterPrefix) || !a.name.ends_with(".a")) continue;
    const std::string layer =
        a.name.substr(kAdapterPrefix.size(), a.name.size() - kAdapterPrefix.size() - 2);
    const Tensor* const b = find_tensor(weights, fmt::format("{}{}.b", kAdapterPrefix, layer));
    const auto weight = std::ranges::find(merged, layer + ".weight", &NamedTensor::name);
    require(b && weight != merged.end(), ErrorKind::corrupt,
            "[{}] the adapter lacks its other half or its layer", a.name);
    const int64_t rank = a.tensor.shape()[0], in = a.tensor.shape()[1], out = b->shape()[0];
    Tensor sum = weight->tensor.to(DType::f32).clone();
    const bool turned = in == out ? in_out : sum.shape() == Shape{in, out};
    require(turned || sum.shape() == Shape{out, in}, ErrorKind::corrupt,
            "[{}] got the shape {}, expected [{}, {}]", weight->name, to_string(sum.shape()), out,
            in);
    for (int64_t o = 0; o < out; ++o)
      for (int64_t i = 0; i < in; ++i) {
        double product = 0;
        for (int64_t r = 0; r < rank; ++r)
          product += static_cast<double>(b->values<float>()[o * rank + r]) *
                     a.tensor.values<float>()[r * in + i];
        float& to = sum.values<float>()[turned ? i * out + o : o * in + i];
        to = static_cast<float>(to + options.scale() * product);
      }
    weight->tensor = sum;
  }
  return merged;
}

}  // namespace artel::nn
