#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

// Inputs: x, the table of cosines and sines and, if the text is read piece by piece, the places of
// the positions of x. "inverse" rotates back.
std::vector<TensorType> infer_rotary(const InferContext& context) {
  context.check_inputs(2, 3);
  const Shape &x = context.shape(0), &table = context.shape(1);
  context.check(x.rank() == 3, "got {}, expected [batch, positions, width]", to_string(x));
  const int64_t heads = context.attributes().integer("heads");
  context.check(heads > 0 && x[2] % (2 * heads) == 0,
                "got {} heads for the width {}, expected heads of an even width", heads, x[2]);
  context.check(
      table.rank() == 2 && table[1] == x[2] / heads && (context.inputs() == 3 || table[0] >= x[1]),
      "got a table {}, expected [{} or more, {}]", to_string(table), x[1], x[2] / heads);
  if (context.inputs() == 3)
    context.check(context.type(2) == TensorType{DType::i32, {x[1]}},
                  "got places {}, expected i32 [{}]", to_string(context.type(2)), x[1]);
  return {context.type(0)};
}

std::vector<Value> rotary_gradient(GradientContext& context) {
  std::vector<Value> inputs = {context.gradient()}, results(context.inputs());
  for (int i = 1; i < context.inputs(); ++i) inputs.push_back(context.input(i));
  Attributes attributes = context.attributes();
  attributes.set("inverse", int64_t{!attributes.flag("inverse")});
  if (context.needs(0))
    results[0] = context.graph().add_one("rotary", std::move(inputs), std::move(attributes));
  return results;
}

}  // namespace

std::vector<OpDefinition> rotary_ops() {
  return {{"rotary", infer_rotary, rotary_gradient,
           [](const InferContext& context) {
             return 3.0 * static_cast<double>(context.shape(0).elements());
           },
           [](const Attributes&, int input) { return input == 2; }}};
}

Value rotary(Value x, Value table, int64_t heads, Value places) {
  std::vector<Value> inputs = {x, table};
  if (places) inputs.push_back(places);
  return x.graph().add_one("rotary", std::move(inputs), {{"heads", heads}});
}

}  // namespace artel
