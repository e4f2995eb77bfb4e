#include "artel/nn/model.h"

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/graph/differentiate.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/fuse_forward.h"
#include "artel/graph/passes/recompute.h"
#include "artel/nn/transformer.h"

namespace artel {
namespace {

Value build_network(const Model& model, ModelGraph& result, const TensorType& x, bool training,
                    Value places = {}, const nn::Build::Trained& trained = {}) {
  nn::Build build(result.graph, training, places, trained);
  const Value input = result.graph.input("x", x);
  Value prediction = model.network()(build, input);
  if (prediction.type().dtype != DType::f32) prediction = unary("to_f32", prediction);
  result.initialisers = build.initialisers();
  result.graph.set_output("prediction", prediction);
  return prediction;
}

void add_loss(ModelGraph& result, Value prediction, const TensorType& y, const Loss& loss) {
  const Value target = result.graph.input("y", y);
  const Graph::Scope scope(result.graph, "loss");
  result.graph.set_output("loss", loss(prediction, target));
}

// A value that is its own mean becomes the shift, whatever it was, and nothing before it learns. A
// lane is normalised by itself, so its samples are what counts.
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

Loss loss_by_name(const std::string& name, double label_smoothing) {
  static const std::map<std::string, Loss> losses = {
      {"mse", mean_squared_error},
      {"l1", l1_loss},
      {"smooth_l1", [](Value p, Value t) { return smooth_l1_loss(p, t); }},
      {"binary_cross_entropy", binary_cross_entropy},
      {"kl", [](Value p, Value t) { return kl_divergence(log_softmax(p), t); }}};
  if (name == "cross_entropy")
    return [label_smoothing](Value prediction, Value target) {
      // [batch, positions, classes], as language models give, are rows too.
      const Shape& shape = prediction.shape();
      if (shape.rank() > 2) {
        const bool labels = target.type().dtype == DType::i32;
        target = reshape(target, labels ? Shape{-1} : Shape{-1, shape.back()});
        prediction = reshape(prediction, {-1, shape.back()});
      }
      return cross_entropy(prediction, target, {}, {.label_smoothing = label_smoothing});
    };
  const auto found = losses.find(name);
  if (found != losses.end()) return found->second;
  std::vector<std::string> names = {"cross_entropy"};
  for (const auto& [known, loss] : losses) names.push_back(known);
  fail(ErrorKind::invalid_argument, "unknown loss '{}'{}; known: {}", name,
       did_you_mean(name, names), join(names, ", "));
}

ModelGraph inference_graph(const Model& model, const TensorType& x) {
  ModelGraph result;
  build_network(model, result, x, false);
  result.graph = fuse_forward(result.graph, false);
  return result;
}

ModelGraph decoding_graph(const Model& model, int64_t tokens) {
  ModelGraph result;
  const Value places = result.graph.input("places", {DType::i32, {tokens}});
  build_network(model, result, {DType::i32, {1, tokens}}, false, places);
  result.graph = fuse_forward(result.graph, false);
  return result;
}

bool is_cache(std::string_view state) { return state.ends_with(nn::kCacheName); }

ModelGraph evaluation_graph(const Model& model, const TensorType& x, const TensorType& y,
                            const Loss& loss) {
  ModelGraph result;
  add_loss(result, build_network(model, result, x, false), y, loss);
  result.graph = fuse_forward(result.graph, false);
  return result;
}

ModelGraph training_graph(const Model& model, const TensorType& x, const TensorType& y,
                          const Loss& loss,
                          const std::function<bool(const std::string&)>& trained) {
  ModelGraph result;
  add_loss(result, build_network(model, result, x, true, {}, trained), y, loss);
  check_batch_norms(result.graph, x.shape[0]);
  result.graph = fuse_forward(result.graph);
  Graph& graph = result.graph;
  std::vector<Value> parameters;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    if (!trained || trained(graph.value(id).name)) parameters.push_back(graph.handle(id));
  const Value weight = graph.input("weight", {DType::f32, Shape{}});
  const std::vector<Value> gradients = differentiate(graph.output("loss"), parameters, weight);
  for (size_t i = 0; i < parameters.size(); ++i)
    if (gradients[i]) graph.set_gradient(parameters[i], gradients[i]);
  result.graph = recompute_norms(prune(graph));
  return result;
}

}  // namespace artel
