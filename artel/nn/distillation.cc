#include "artel/nn/distillation.h"

#include "artel/base/error.h"
#include "artel/graph/ops.h"

namespace artel::nn {
namespace {

bool of_classes(const std::string& loss) { return loss == "cross_entropy" || loss == "kl"; }
bool of_two_classes(const std::string& loss) { return loss == "binary_cross_entropy"; }

Value softened(Value scores, const std::string& loss, double temperature) {
  if (of_classes(loss)) return softmax(mul_scalar(scores, 1 / temperature));
  if (of_two_classes(loss)) return unary("sigmoid", mul_scalar(scores, 1 / temperature));
  return scores;
}

// 1 for each row that has a label, 0 for ignored ones.
Value labelled_rows(Value labels) {
  const Value numbers = reshape(unary("to_f32", labels), {-1, 1});
  const Value limit = numbers.graph().constant("least label", Tensor::from<float>({1, 1}, {-0.5F}));
  return greater(numbers, limit);
}

Value divergence(Value prediction, Value target, Value teacher, double temperature) {
  const auto [scores, labels] = class_rows(prediction, target);
  Value shares = reshape(teacher, {-1, prediction.shape().back()});
  if (target.type().dtype == DType::i32) shares = mul(shares, labelled_rows(labels));
  return kl_divergence(log_softmax(mul_scalar(scores, 1 / temperature)), shares);
}

Value soft_loss(const std::string& loss, const Loss& hard, Value prediction, Value target,
                Value teacher, double temperature) {
  const double scale = temperature * temperature;
  if (of_classes(loss))
    return mul_scalar(divergence(prediction, target, teacher, temperature), scale);
  if (of_two_classes(loss))
    return mul_scalar(binary_cross_entropy(mul_scalar(prediction, 1 / temperature), teacher),
                      scale);
  return hard(prediction, teacher).weighted;
}

}  // namespace

std::string teacher_prefix(size_t number) { return "teacher" + std::to_string(number); }

Model softened_outputs(const std::vector<Model>& teachers, const std::string& loss,
                       const DistillationOptions& options) {
  require(!teachers.empty(), ErrorKind::invalid_argument,
          "distillation: got no teachers, expected at least one");
  return Layer("teachers", [=](Build& build, Value x) {
    Value sum;
    for (size_t i = 0; i < teachers.size(); ++i) {
      // Names of kept values must be unique, so each teacher gets its own Build.
      Build own(build.graph(), false);
      own.set_input("x", x);
      const Graph::Scope scope(build.graph(), teacher_prefix(i));
      const Value scores = teachers[i].network()(own, x);
      const Value each = softened(scores, loss, options.temperature);
      require(!sum || sum.shape() == each.shape(), ErrorKind::shape,
              "distillation: teacher {} outputs {}, expected {} like the first one", i + 1,
              to_string(each.shape()), to_string(sum ? sum.shape() : each.shape()));
      sum = sum ? add(sum, each) : each;
    }
    return teachers.size() == 1 ? sum : mul_scalar(sum, 1.0 / static_cast<double>(teachers.size()));
  });
}

Loss distilled_loss(const std::string& loss, const Loss& hard, const DistillationOptions& options) {
  return [=](Value prediction, Value target) {
    const Value teacher = prediction.graph().input(kTeacherInput, {DType::f32, prediction.shape()});
    const double share = options.weight;
    const WeightedMean known = hard(prediction, target);
    const Value soft = soft_loss(loss, hard, prediction, target, teacher, options.temperature);
    const Value both = add(mul_scalar(known.weighted, 1 - share), mul_scalar(soft, share));
    return known.weight ? WeightedMean(both, known.weight) : WeightedMean(both);
  };
}

}  // namespace artel::nn
