#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"
#include "artel/graph/ops/shared.h"

namespace artel {
namespace {

// Inputs: q, k, and v, or with "packed" one value with all three side by side; then the optional
// mask. Outputs: y, and the logarithm of each query's sum of exponentials as two numbers.
struct Operands {
  Shape q, k;  // [batch, positions, width]
  int count;   // of inputs, not counting the mask
};

Operands operands_of(const InferContext& context, int first) {
  Shape q = context.shape(first);
  context.check(q.rank() == 3, "got {}, expected [batch, positions, width]", to_string(q));
  if (!context.attributes().flag("packed")) return {q, context.shape(first + 1), 3};
  context.check(q[2] % 3 == 0, "got {}, expected q, k and v side by side in the last axis",
                to_string(q));
  q[2] /= 3;
  return {q, q, 1};
}

std::vector<TensorType> infer_attention(const InferContext& context) {
  const auto [q, k, count] = operands_of(context, 0);
  context.check_inputs(count, count + 1);
  const int64_t heads = context.attributes().integer("heads");
  context.check(heads > 0 && q[2] % heads == 0,
                "got {} heads for the width {}, expected a divisor of it", heads, q[2]);
  const double dropout = context.attributes().number("dropout");
  context.check(dropout >= 0 && dropout < 1, "got dropout {}, expected 0 <= p < 1", dropout);
  if (count == 3)
    context.check(k.rank() == 3 && context.shape(2) == k && k[0] == q[0] && k[2] == q[2],
                  "got queries {}, keys {} and values {}, expected equal batches and widths",
                  to_string(q), to_string(k), to_string(context.shape(2)));
  if (context.inputs() > count)
    context.check(context.shape(count) == Shape{k[0], k[1]}, "got a mask {}, expected [{}, {}]",
                  to_string(context.shape(count)), k[0], k[1]);
  return {{DType::f32, q}, {DType::f32, {q[0], heads, q[1], 2}}};
}

double flops_of(const Operands& operands, bool causal, double products) {
  return products * 2.0 * static_cast<double>(operands.q.elements()) *
         static_cast<double>(operands.k[1]) * (causal ? 0.5 : 1.0);
}

double attention_flops(const InferContext& context) {
  return flops_of(operands_of(context, 0), context.attributes().flag("causal"), 2);
}

double backward_flops(const InferContext& context) {
  return flops_of(operands_of(context, 2), context.attributes().flag("causal"), 5);
}

std::vector<Value> attention_gradient(GradientContext& context) {
  std::vector<Value> inputs = {context.gradient(), context.output(1)};
  for (int i = 0; i < context.inputs(); ++i) inputs.push_back(context.input(i));
  std::vector<Value> results =
      context.graph().add("attention_backward", std::move(inputs), context.attributes());
  results.resize(static_cast<size_t>(context.inputs()));  // no gradient for the mask
  return results;
}

// Inputs: dy, the logarithms, then those of the forward op. Outputs: gradients of q, k and v.
std::vector<TensorType> infer_attention_backward(const InferContext& context) {
  std::vector<TensorType> types;
  for (int i = 0; i < operands_of(context, 2).count; ++i) types.push_back(context.type(2 + i));
  return types;
}

std::vector<TensorType> infer_cached(const InferContext& context) {
  context.check_inputs(3, 3);
  Shape y = context.shape(0);
  const Shape& cache = context.shape(1);
  const int64_t heads = context.attributes().integer("heads");
  const int64_t key_heads = context.attributes().integer("key_heads");
  context.check(heads > 0 && key_heads > 0 && heads % key_heads == 0,
                "got {} heads and {} key heads, expected a multiple", heads, key_heads);
  const int64_t parts = heads + 2 * key_heads;
  context.check(y.rank() == 3 && y[0] == 1 && y[2] % parts == 0,
                "got {}, expected [1, tokens, a multiple of {}]", to_string(y), parts);
  const int64_t width = y[2] / parts;  // of a head
  y[2] = heads * width;
  context.check(
      cache.rank() == 3 && cache[0] == 2 && cache[1] >= y[1] && cache[2] == key_heads * width,
      "got a cache {}, expected [2, {} or more, {}]", to_string(cache), y[1], key_heads * width);
  context.check(context.type(2) == TensorType{DType::i32, {y[1]}},
                "got places {}, expected i32 [{}]", to_string(context.type(2)), y[1]);
  return {{DType::f32, y}};
}

Value add_attention(std::vector<Value> inputs, const AttentionOptions& options, bool packed) {
  Graph& graph = inputs.front().graph();
  if (options.mask) inputs.push_back(options.mask);
  Attributes attributes = {{"heads", options.heads},
                           {"causal", int64_t{options.causal}},
                           {"packed", int64_t{packed}},
                           {"dropout", options.dropout},
                           {"stream", random_stream(graph, "attention")}};
  return graph.add_one("attention", std::move(inputs), std::move(attributes));
}

}  // namespace

std::vector<OpDefinition> attention_ops() {
  // The mask follows q, k and v, which may be one input.
  const auto mask_from = [](int first) {
    return [first](const Attributes& attributes, int input) {
      return input == first + (attributes.flag("packed") ? 1 : 3);
    };
  };
  return {{"attention", infer_attention, attention_gradient, attention_flops, mask_from(0)},
          {"attention_backward", infer_attention_backward, nullptr, backward_flops, mask_from(2)},
          {"cached_attention", infer_cached, nullptr, nullptr,
           [](const Attributes&, int input) { return input == 2; }}};
}

Value attention(Value q, Value k, Value v, const AttentionOptions& options) {
  return add_attention({q, k, v}, options, false);
}

Value attention(Value qkv, const AttentionOptions& options) {
  return add_attention({qkv}, options, true);
}

Value cached_attention(Value qkv, Value cache, Value places, int64_t heads, int64_t key_heads) {
  return qkv.graph().add_one("cached_attention", {qkv, cache, places},
                             {{"heads", heads}, {"key_heads", key_heads > 0 ? key_heads : heads}});
}

}  // namespace artel
