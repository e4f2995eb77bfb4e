#include "artel/nn/loss.h"

#include "artel/base/registry.h"
#include "artel/graph/ops.h"

namespace artel {
namespace {

void require_plain_labels(const LabelOptions& labels) {
  require(labels.label_smoothing == 0, ErrorKind::invalid_argument,
          "label_smoothing: got {}, but only the loss \"cross_entropy\" has classes to spread it "
          "over; try 0",
          labels.label_smoothing);
  require(labels.class_weights.empty(), ErrorKind::invalid_argument,
          "class_weights: got {} of them, but only the losses \"cross_entropy\" and "
          "\"binary_cross_entropy\" have classes; leave them out",
          labels.class_weights.size());
}

using MakeLoss = std::function<Loss(const LabelOptions&)>;

MakeLoss plain(Loss loss) {
  return [loss = std::move(loss)](const LabelOptions& labels) {
    require_plain_labels(labels);
    return loss;
  };
}

Value constant_weights(Graph& graph, const std::vector<double>& weights) {
  std::vector<float> rounded(weights.begin(), weights.end());
  const auto count = static_cast<int64_t>(rounded.size());
  return graph.constant("class weights", Tensor::from<float>({count}, rounded));
}

Loss class_cross_entropy(const LabelOptions& given) {
  return [given](Value prediction, Value target) -> WeightedMean {
    const auto [rows, labels] = class_rows(prediction, target);
    const CrossEntropyOptions options = {.label_smoothing = given.label_smoothing};
    const Value weights = given.class_weights.empty()
                              ? Value()
                              : constant_weights(prediction.graph(), given.class_weights);
    if (labels.type().dtype == DType::i32)
      return weighted_cross_entropy(rows, labels, weights, options);
    return cross_entropy(rows, labels, weights, options);
  };
}

Loss two_class_cross_entropy(const LabelOptions& given) {
  require_plain_labels({.label_smoothing = given.label_smoothing});
  if (given.class_weights.empty()) return binary_cross_entropy;  // a plain mean
  require(given.class_weights.size() == 2, ErrorKind::invalid_argument,
          "class_weights: got {}, expected 2 for the loss \"binary_cross_entropy\"",
          given.class_weights.size());
  return [given](Value logits, Value target) {
    require(logits.shape().elements() == target.shape().elements(), ErrorKind::shape,
            "[loss binary_cross_entropy] got targets {} for the network's output {}, expected as "
            "many",
            to_string(target.shape()), to_string(logits.shape()));
    const Value number = target.type().dtype == DType::i32 ? unary("to_f32", target) : target;
    const Value t = reshape(number, logits.shape());
    const double first = given.class_weights[0], step = given.class_weights[1] - first;
    const Value each = sub(unary("softplus", logits), mul(logits, t));
    const Value weights = add_scalar(mul_scalar(t, step), first);
    return WeightedMean(mean(mul(weights, each)), mean(weights));
  };
}

Registry<MakeLoss>& losses() {
  static Registry<MakeLoss> registry(
      "loss", {{"cross_entropy", class_cross_entropy},
               {"binary_cross_entropy", two_class_cross_entropy},
               {"kl", plain([](Value p, Value t) { return kl_divergence(log_softmax(p), t); })},
               {"l1", plain(l1_loss)},
               {"mse", plain(mean_squared_error)},
               {"smooth_l1", plain([](Value p, Value t) { return smooth_l1_loss(p, t); })}});
  return registry;
}

}  // namespace

Value one_hot(Value labels, int64_t classes) {
  std::vector<float> all(static_cast<size_t>(classes));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
  const Value numbers = labels.graph().constant("classes", Tensor::from<float>({1, classes}, all));
  return equal(reshape(labels, {-1, 1}), numbers);
}

Loss loss_by_name(const std::string& name, double label_smoothing) {
  return make_loss(name, {.label_smoothing = label_smoothing});
}

Loss make_loss(const LossChoice& choice, const LabelOptions& labels) {
  if (const Loss* loss = std::get_if<Loss>(&choice)) {
    require_plain_labels(labels);
    return *loss;
  }
  return losses().at(std::get<std::string>(choice))(labels);
}

std::string loss_name(const LossChoice& choice) {
  const auto* name = std::get_if<std::string>(&choice);
  return name ? *name : "a function";
}

std::vector<std::string> loss_names() { return losses().names(); }

void register_loss(const std::string& name, Loss loss) {
  require_function("loss", name, loss);
  losses().add(name, plain(std::move(loss)));
}

std::pair<Value, Value> class_rows(Value prediction, Value target) {
  const Shape& shape = prediction.shape();
  if (shape.rank() <= 2) return {prediction, target};
  const bool labels = target.type().dtype == DType::i32;
  const Shape rows = {-1, shape.back()};
  const Shape wanted =
      labels ? Shape({shape.extents().begin(), shape.extents().end() - 1}) : Shape(shape);
  require(target.shape() == wanted, ErrorKind::shape,
          "[loss] got {} {} for the network's output {}, expected {}",
          labels ? "classes" : "shares", to_string(target.shape()), to_string(shape),
          to_string(wanted));
  return {reshape(prediction, rows), reshape(target, labels ? Shape{-1} : rows)};
}

}  // namespace artel
