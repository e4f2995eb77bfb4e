#include "artel/tensor/quantised.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

// Inputs: x or tokens, codes, scales, then offsets and bias if the attributes say so.
struct QuantisedOperands {
  int64_t rows, columns;
};

QuantisedOperands quantised_operands(const InferContext& context) {
  const bool offsets = context.attributes().flag("offsets");
  const int count = 3 + (offsets ? 1 : 0) + (context.attributes().flag("bias") ? 1 : 0);
  context.check_inputs(count, count);
  const TensorType &codes = context.type(1), &scales = context.type(2);
  const bool eight = codes.dtype == DType::i8;
  context.check(codes.shape.rank() == 2 && (eight || codes.dtype == DType::u8),
                "got codes {}, expected i8 or u8 [rows, columns]", to_string(codes));
  const int64_t rows = codes.shape[0], columns = codes.shape[1] * (eight ? 1 : 2);
  context.check(scales.dtype == DType::f16 && scales.shape.rank() == 2 && scales.shape[0] == rows &&
                    scales.shape[1] > 0 && columns % scales.shape[1] == 0 &&
                    columns / scales.shape[1] % kQuantisedBlock == 0,
                "got scales {}, expected f16 [{}, groups of a multiple of {} columns]",
                to_string(scales), rows, kQuantisedBlock);
  if (offsets)
    context.check(!eight && context.type(3) == scales, "got offsets {}, expected {} of 4 bits",
                  to_string(context.type(3)), to_string(scales));
  return {rows, columns};
}

std::vector<TensorType> infer_quantised_dense(const InferContext& context) {
  const auto [rows, columns] = quantised_operands(context);
  Shape y = context.shape(0);
  context.check(y.rank() >= 1 && y.back() == columns, "got {}, expected [..., {}]", to_string(y),
                columns);
  y[y.rank() - 1] = rows;
  if (context.attributes().flag("bias"))
    context.check(context.shape(context.inputs() - 1) == Shape{rows},
                  "got a bias {}, expected [{}]", to_string(context.shape(context.inputs() - 1)),
                  rows);
  return {{DType::f32, y}};
}

std::vector<TensorType> infer_quantised_embedding(const InferContext& context) {
  const auto [rows, columns] = quantised_operands(context);
  context.check(context.type(0).dtype == DType::i32, "got indices {}, expected i32",
                to_string(context.type(0)));
  std::vector<int64_t> extents = context.shape(0).extents();
  extents.push_back(columns);
  return {{DType::f32, Shape(extents)}};
}

Value add_quantised(const char* op, Value x, const QuantisedValue& matrix, Value bias) {
  std::vector<Value> inputs = {x, matrix.codes, matrix.scales};
  if (matrix.offsets) inputs.push_back(matrix.offsets);
  if (bias) inputs.push_back(bias);
  return x.graph().add_one(
      op, std::move(inputs),
      {{"offsets", int64_t{bool(matrix.offsets)}}, {"bias", int64_t{bool(bias)}}});
}

}  // namespace

std::vector<OpDefinition> quantised_ops() {
  const auto stored = [](const Attributes&, int input) { return input >= 1; };
  return {{"quantised_dense", infer_quantised_dense, nullptr,
           [](const InferContext& context) {
             const Shape& x = context.shape(0);
             return 2.0 * static_cast<double>(x.elements()) *
                    static_cast<double>(context.shape(1)[0]);
           },
           stored},
          {"quantised_embedding", infer_quantised_embedding, nullptr, nullptr,
           [](const Attributes&, int) { return true; }}};
}

Value dense(Value x, const QuantisedValue& matrix, Value bias) {
  return add_quantised("quantised_dense", x, matrix, bias);
}

Value embedding(Value indices, const QuantisedValue& table) {
  return add_quantised("quantised_embedding", indices, table, {});
}

}  // namespace artel
