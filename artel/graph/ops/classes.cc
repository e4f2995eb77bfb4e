// Scores of classes read as answers: for metrics, so neither op has a gradient.
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

void check_scores(const InferContext& context) {
  const Shape& scores = context.shape(0);
  context.check(scores.rank() >= 1 && scores.back() >= 1,
                "got scores {}, expected [..., classes] with one class or more", to_string(scores));
}

std::vector<TensorType> infer_argmax(const InferContext& context) {
  context.check_inputs(1, 1);
  check_scores(context);
  std::vector<int64_t> extents = context.shape(0).extents();
  extents.pop_back();
  return {{DType::i32, Shape(std::move(extents))}};
}

std::vector<TensorType> infer_count_top(const InferContext& context) {
  context.check_inputs(2, 2);
  check_scores(context);
  const Shape& scores = context.shape(0);
  context.check(context.type(1).dtype == DType::i32 &&
                    context.shape(1).elements() == scores.elements() / scores.back(),
                "got labels {} for scores {}, expected an i32 label for each row",
                to_string(context.type(1)), to_string(scores));
  context.check(context.attributes().integer("k") >= 1, "got k = {}, expected 1 or more",
                context.attributes().integer("k"));
  return {{DType::f32, Shape{2}}};
}

}  // namespace

std::vector<OpDefinition> class_ops() {
  return {{"argmax", infer_argmax, nullptr, nullptr},
          {"count_top", infer_count_top, nullptr, nullptr,
           [](const Attributes&, int input) { return input == 1; }}};
}

Value argmax(Value scores) { return scores.graph().add_one("argmax", {scores}); }

Value count_top(Value scores, Value labels, int64_t k) {
  return scores.graph().add_one("count_top", {scores, labels},
                                {{"k", k}, {"ignore_index", CrossEntropyOptions{}.ignore_index}});
}

}  // namespace artel
