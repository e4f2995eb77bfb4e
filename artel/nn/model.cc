#include "artel/nn/model.h"

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/lower.h"
#include "artel/nn/transformer.h"

namespace artel {
namespace {

Value build_network(const Model& model, ModelGraph& result, const TensorType& x, bool training,
                    Value places = {}, const nn::Build::Trained& trained = {}) {
  nn::Build build(result.graph, training, places, trained);
  const Value input = result.graph.input("x", x);
  build.set_input("x", input);
  Value prediction = model.network()(build, input);
  if (prediction.type().dtype != DType::f32) prediction = unary("to_f32", prediction);
  result.initialisers = build.initialisers();
  result.graph.set_output("prediction", prediction);
  return prediction;
}

void add_loss(ModelGraph& result, Value prediction, const TensorType& y, const Loss& loss,
              const std::vector<Metric>& metrics) {
  const Value target = result.graph.input("y", y);
  {
    const Graph::Scope scope(result.graph, "loss");
    const WeightedMean value = loss(prediction, target);
    require(static_cast<bool>(value.weighted), ErrorKind::invalid_argument,
            "loss: returned an empty value, expected a scalar");
    result.graph.set_output("loss", value.weighted);
    if (value.weight) result.graph.set_output("loss_weight", value.weight);
  }
  Metrics::add_to(result.graph, metrics, prediction, target);
}

// A value that is its own mean becomes the shift, independently of the value, and earlier layers
// learn nothing. A lane is normalised by itself, so the number of its samples counts.
void check_batch_norms(const Graph& graph, int64_t samples) {
  for (const Node& node : graph.nodes()) {
    if (node.op->name != "batch_norm") continue;
    const Shape& shape = graph.type(node.inputs[0]).shape;
    require(
        shape.elements() > shape[1], ErrorKind::shape,
        "[layer '{}'] batch_norm: got {} in training, one value for each channel, expected more; "
        "the batch of a lane is {}: try fewer lanes (cluster.lanes) or a larger "
        "train.batch_size",
        node.name, to_string(shape), samples);
  }
}

}  // namespace

ModelGraph inference_graph(const Model& model, const TensorType& x, const ShardPart& part) {
  ModelGraph result;
  build_network(model, result, x, false);
  result.graph = lower(result.graph, {}, part);
  return result;
}

ModelGraph decoding_graph(const Model& model, int64_t tokens) {
  ModelGraph result;
  const Value places = result.graph.input("places", {DType::i32, {tokens}});
  build_network(model, result, {DType::i32, {1, tokens}}, false, places);
  result.graph = lower(result.graph);
  return result;
}

bool is_cache(std::string_view state) { return state.ends_with(nn::kCacheName); }

ModelGraph evaluation_graph(const Model& model, const TensorType& x, const TensorType& y,
                            const Loss& loss, const std::vector<Metric>& metrics,
                            const ShardPart& part) {
  ModelGraph result;
  add_loss(result, build_network(model, result, x, false), y, loss, metrics);
  result.graph = lower(result.graph, {}, part);
  return result;
}

ModelGraph training_graph(const Model& model, const TensorType& x, const TensorType& y,
                          const Loss& loss, const std::function<bool(const std::string&)>& trained,
                          const std::vector<Metric>& metrics, const ShardPart& part, int lanes,
                          std::optional<bool> recompute_batch_norms) {
  ModelGraph result;
  add_loss(result, build_network(model, result, x, true, {}, trained), y, loss, metrics);
  check_batch_norms(result.graph, x.shape[0]);
  // It is not read after a step, and the gradient of the loss can take its place.
  result.graph.drop_output("prediction");
  result.graph = lower(result.graph, Differentiation{.weight = "weight", .trained = trained}, part,
                       {.lanes = lanes, .batch_norms = recompute_batch_norms});
  return result;
}

bool uses_batch_statistics(const Model& model, const TensorType& sample,
                           const std::function<bool(const std::string&)>& trained) {
  std::vector<int64_t> extents = sample.shape.extents();
  extents.insert(extents.begin(), 2);
  ModelGraph result;
  build_network(model, result, {sample.dtype, Shape(std::move(extents))}, true, {}, trained);
  return !result.graph.state_updates().empty();
}

}  // namespace artel
