#include "artel/graph/ops/shards.h"

#include <bit>

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/catalogue.h"

namespace artel {
namespace {

Attributes shard_attributes(const ShardPart& part, const Split& split = {}) {
  return {{"shards", int64_t{part.shards}},
          {"first", int64_t{part.first}},
          {"last", int64_t{part.last}},
          {"axis", int64_t{split.axis}},
          {"blocks", int64_t{split.blocks}}};
}

// The sum over the shards [first, last) of the part, along the tree (comm/collectives/lane_tree.h).
Value tree_sum(const std::vector<Value>& partials, const ShardPart& part, int first, int last) {
  if (last - first == 1) return partials[static_cast<size_t>(first - part.first)];
  const int middle =
      first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
  return add(tree_sum(partials, part, first, middle), tree_sum(partials, part, middle, last));
}

// The sums of the largest subtrees of the tree over [first, last) that belong to the part, from
// left to right.
void add_subtrees(const std::vector<Value>& partials, const ShardPart& part, int first, int last,
                  std::vector<Value>& sums) {
  if (last <= part.first || part.last <= first) return;
  if (part.first <= first && last <= part.last) {
    sums.push_back(tree_sum(partials, part, first, last));
    return;
  }
  const int middle =
      first + static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
  add_subtrees(partials, part, first, middle, sums);
  add_subtrees(partials, part, middle, last, sums);
}

std::vector<TensorType> infer_shard_copies(const InferContext& context) {
  context.check_inputs(1, 1);
  return std::vector<TensorType>(static_cast<size_t>(part_of(context.attributes()).count()),
                                 context.type(0));
}

std::vector<Value> shard_copies_gradient(GradientContext& context) {
  const ShardPart part = part_of(context.attributes());
  std::vector<Value> gradients;
  for (int i = 0; i < part.count(); ++i) {
    gradients.push_back(context.gradient(i));
    require(static_cast<bool>(gradients.back()), ErrorKind::internal,
            "[shard_copies] shard {} has no gradient, expected one of each", part.first + i);
  }
  return {shard_sum(gradients, part)};
}

std::vector<TensorType> infer_shard_sum(const InferContext& context) {
  for (int i = 1; i < context.inputs(); ++i)
    context.check(context.type(i) == context.type(0), "got {} and {}, expected equal shapes",
                  to_string(context.type(0)), to_string(context.type(i)));
  return {context.type(0)};
}

std::vector<Value> shard_sum_gradient(GradientContext& context) {
  return std::vector<Value>(static_cast<size_t>(context.inputs()), context.gradient());
}

std::vector<TensorType> infer_shard_slices(const InferContext& context) {
  context.check_inputs(1, 1);
  const ShardPart part = part_of(context.attributes());
  std::vector<TensorType> types;
  for (int shard = part.first; shard < part.last; ++shard)
    types.push_back({context.type(0).dtype,
                     shard_shape(context.shape(0), split_of(context.attributes()), shard)});
  return types;
}

std::vector<Value> shard_slices_gradient(GradientContext& context) {
  const ShardPart part = part_of(context.attributes());
  const Split split = split_of(context.attributes());
  std::vector<Value> gradients;
  for (int i = 0; i < part.count(); ++i) gradients.push_back(context.gradient(i));
  return {shard_gather(gradients, split, context.input(0).shape()[split.axis], part)};
}

std::vector<TensorType> infer_shard_gather(const InferContext& context) {
  const ShardPart part = part_of(context.attributes());
  context.check_inputs(part.count(), part.count());
  const Split split = split_of(context.attributes());
  TensorType type = context.type(0);
  type.shape[split.axis] = context.attributes().integer("extent");
  for (int i = 0; i < part.count(); ++i)
    context.check(context.shape(i) == shard_shape(type.shape, split, part.first + i),
                  "got {} for shard {}, expected {}", to_string(context.shape(i)), part.first + i,
                  to_string(shard_shape(type.shape, split, part.first + i)));
  return {type};
}

std::vector<Value> shard_gather_gradient(GradientContext& context) {
  return shard_slices(context.gradient(), split_of(context.attributes()),
                      part_of(context.attributes()));
}

// Inputs: the scores of the shards here, then the labels of their rows.
void check_classes(const InferContext& context) {
  const ShardPart part = part_of(context.attributes());
  const int count = part.count();
  context.check_inputs(count + 1, count + 1);
  const Split classes = split_of(context.attributes());
  Shape all = {context.attributes().integer("classes")};
  for (int i = 0; i < count; ++i) {
    const Shape& scores = context.shape(i);
    context.check(
        scores.rank() > 0 && scores.back() == shard_shape(all, classes, part.first + i)[0] &&
            scores.elements() == context.shape(count).elements() * scores.back() &&
            context.type(count).dtype == DType::i32,
        "got scores {} for labels {}, expected a row with the classes of shard {} for each "
        "label",
        to_string(scores), to_string(context.type(count)), part.first + i);
  }
}

std::vector<TensorType> infer_shard_loss(const InferContext& context) {
  check_classes(context);
  const int64_t rows = context.shape(context.inputs() - 1).elements();
  return {{DType::f32, Shape{}}, {DType::f32, {rows, 2}}, {DType::f32, Shape{}}};
}

std::vector<Value> shard_loss_gradient(GradientContext& context) {
  const ShardPart part = part_of(context.attributes());
  std::vector<Value> results(static_cast<size_t>(context.inputs()));
  if (!context.gradient()) return results;  // the weight alone depends on no scores
  for (int i = 0; i < part.count(); ++i) {
    Attributes attributes = context.attributes();
    attributes.set("shard", int64_t{part.first + i});
    results[static_cast<size_t>(i)] =
        context.graph().add_one("shard_cross_entropy_backward",
                                {context.gradient(), context.output(1), context.input(i),
                                 context.input(context.inputs() - 1)},
                                std::move(attributes));
  }
  return results;
}

std::vector<TensorType> infer_shard_count(const InferContext& context) {
  check_classes(context);
  return {{DType::f32, Shape{2}}};
}

bool is_label(const Attributes& attributes, int input) {
  return input == part_of(attributes).count();
}

}  // namespace

bool exchanges_shards(std::string_view op) {
  return op == "shard_sum" || op == "shard_gather" || op == "shard_cross_entropy" ||
         op == "shard_count_top";
}

ShardPart part_of(const Attributes& attributes) {
  return {static_cast<int>(attributes.integer("shards")),
          static_cast<int>(attributes.integer("first")),
          static_cast<int>(attributes.integer("last"))};
}

Split split_of(const Attributes& attributes) {
  return {static_cast<int>(attributes.integer("axis")),
          static_cast<int>(attributes.integer("blocks")),
          static_cast<int>(attributes.integer("shards"))};
}

std::vector<OpDefinition> shard_ops() {
  return {{"shard_copies", infer_shard_copies, shard_copies_gradient, nullptr},
          {"shard_sum", infer_shard_sum, shard_sum_gradient, nullptr},
          {"shard_slices", infer_shard_slices, shard_slices_gradient, nullptr},
          {"shard_gather", infer_shard_gather, shard_gather_gradient, nullptr},
          {"shard_cross_entropy", infer_shard_loss, shard_loss_gradient, nullptr, is_label},
          // Inputs: the gradient of the loss, the saved logarithms, a shard's scores, the labels.
          {"shard_cross_entropy_backward",
           [](const InferContext& c) -> std::vector<TensorType> { return {c.type(2)}; }, nullptr,
           nullptr, [](const Attributes&, int input) { return input == 3; }},
          {"shard_count_top", infer_shard_count, nullptr, nullptr, is_label}};
}

std::vector<Value> shard_copies(Value x, const ShardPart& part) {
  return x.graph().add("shard_copies", {x}, shard_attributes(part));
}

Value shard_sum(const std::vector<Value>& partials, const ShardPart& part) {
  std::vector<Value> sums;
  add_subtrees(partials, part, 0, part.shards, sums);
  if (part.whole()) return sums.front();
  Graph& graph = partials.front().graph();
  return graph.add_one("shard_sum", std::move(sums), shard_attributes(part));
}

std::vector<Value> shard_slices(Value x, const Split& split, const ShardPart& part) {
  return x.graph().add("shard_slices", {x}, shard_attributes(part, split));
}

Value shard_gather(const std::vector<Value>& pieces, const Split& split, int64_t extent,
                   const ShardPart& part) {
  Attributes attributes = shard_attributes(part, split);
  attributes.set("extent", extent);
  return pieces.front().graph().add_one("shard_gather", pieces, std::move(attributes));
}

namespace {

std::vector<Value> of_classes(const char* op, std::vector<Value> inputs, Value labels,
                              int64_t classes, Attributes attributes) {
  attributes.set("classes", classes);
  inputs.push_back(labels);
  return labels.graph().add(op, std::move(inputs), std::move(attributes));
}

}  // namespace

WeightedMean shard_cross_entropy(const std::vector<Value>& pieces, Value labels, int64_t classes,
                                 int64_t ignore_index, bool over_rows, const ShardPart& part) {
  Attributes attributes = shard_attributes(part);
  attributes.set("ignore_index", ignore_index);
  attributes.set("over_rows", int64_t{over_rows});
  const std::vector<Value> outputs =
      of_classes("shard_cross_entropy", pieces, labels, classes, std::move(attributes));
  return {outputs[0], outputs[2]};
}

Value shard_count_top(const std::vector<Value>& pieces, Value labels, int64_t classes, int64_t k,
                      int64_t ignore_index, const ShardPart& part) {
  Attributes attributes = shard_attributes(part);
  attributes.set("ignore_index", ignore_index);
  attributes.set("k", k);
  return of_classes("shard_count_top", pieces, labels, classes, std::move(attributes)).front();
}

}  // namespace artel
