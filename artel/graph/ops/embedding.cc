#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

std::vector<TensorType> infer_embedding(const InferContext& context) {
  context.check_inputs(2, 2);
  const Shape& table = context.shape(1);
  context.check(context.type(0).dtype == DType::i32,
                "got indices of type {}, expected i32; save tokens as whole numbers",
                to_string(context.type(0).dtype));
  context.check(table.rank() == 2, "got a table {}, expected [rows, width]", to_string(table));
  std::vector<int64_t> extents = context.shape(0).extents();
  extents.push_back(table[1]);
  return {{DType::f32, Shape(std::move(extents))}};
}

std::vector<Value> embedding_gradient(GradientContext& context) {
  std::vector<Value> results(2);
  if (context.needs(1)) {
    Attributes attributes = context.attributes();  // of a shard: which rows it has
    attributes.set("shape", context.input(1).shape().extents());
    results[1] = context.graph().add_one(
        "embedding_backward", {context.gradient(), context.input(0)}, std::move(attributes));
  }
  return results;
}

// Inputs: the gradient and the indices; optionally a third value to which the rows are added
// instead of zeros.
std::vector<TensorType> infer_embedding_backward(const InferContext& context) {
  context.check_inputs(2, 3);
  return {{DType::f32, Shape(context.attributes().integers("shape"))}};
}

}  // namespace

std::vector<OpDefinition> embedding_ops() {
  return {
      {.name = "embedding",
       .infer = infer_embedding,
       .gradient = embedding_gradient,
       .takes_integers = [](const Attributes&, int input) { return input == 0; },
       .with_quantised = [](const std::vector<Value>& inputs,
                            const QuantisedValue& table) { return embedding(inputs[0], table); }},
      {"embedding_backward", infer_embedding_backward, nullptr, nullptr,
       [](const Attributes&, int input) { return input == 1; }}};
}

Value embedding(Value indices, Value table) {
  return indices.graph().add_one("embedding", {indices, table});
}

}  // namespace artel
