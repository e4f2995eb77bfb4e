#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

// The loss of a row is the sum over classes of coefficient * -log(probability), see
// exec/cpu/rows/cross_entropy.cc. A label outside the classes makes the loss NaN.
constexpr std::string_view kLossSource = R"(
float coefficient(int i, float smooth, float sharp, __global const float* shares,
                  __global const float* weights) {
  const float value = shares ? smooth + shares[i] * sharp : smooth;
  return weights ? value * weights[i] : value;
}

/* Of each row: its loss, then its weight. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void row_losses(int classes, float smoothing, int ignored, IN(float, logits), IN(int, labels),
                IN(float, shares), IN(float, weights), OUT(float, log_sums),
                OUT(float, row_sums)) {
  __local float scratch[64];
  USE_IN(float, logits);
  USE_IN(int, labels);
  USE_IN(float, shares);
  USE_IN(float, weights);
  USE_OUT(float, log_sums);
  USE_OUT(float, row_sums);
  const int row = get_group_id(0), l = get_local_id(0);
  logits += (long)row * classes;
  if (shares) shares += (long)row * classes;
  float largest = -INFINITY;
  for (int i = l; i < classes; i += 64) largest = larger_of(largest, logits[i]);
  largest = group_max(scratch, largest);
  float sum = 0;
  for (int i = l; i < classes; i += 64) sum += exp(logits[i] - largest);
  const float rest = log(group_sum(scratch, sum));
  const float smooth = smoothing / classes, sharp = 1 - smoothing;
  float loss = 0;
  if (shares || smooth != 0)
    for (int i = l; i < classes; i += 64)
      loss += coefficient(i, smooth, sharp, shares, weights) * (largest - logits[i] + rest);
  loss = group_sum(scratch, loss);
  if (l > 0) return;
  log_sums[2 * row] = largest;
  log_sums[2 * row + 1] = rest;
  float weight = 1;
  if (labels) {
    const int label = labels[row];
    if (label == ignored) {
      loss = weight = 0;
    } else if (label < 0 || label >= classes) {
      loss = NAN;
    } else {
      weight = weights ? weights[label] : 1.0f;
      loss += sharp * weight * (largest - logits[label] + rest);
    }
  }
  row_sums[2 * row] = loss;
  row_sums[2 * row + 1] = weight;
}

/* sums: the mean loss, and the mean weight of the rows. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void mean_loss(int rows, int over_rows, IN(float, row_sums), OUT(float, loss),
               OUT(float, mean_weight)) {
  __local float scratch[64];
  USE_IN(float, row_sums);
  USE_OUT(float, loss);
  USE_OUT(float, mean_weight);
  float sum = 0, weight = 0;
  for (int row = get_local_id(0); row < rows; row += 64) {
    sum += row_sums[2 * row];
    weight += row_sums[2 * row + 1];
  }
  sum = group_sum(scratch, sum);
  weight = group_sum(scratch, weight);
  if (get_local_id(0) > 0) return;
  const float divisor = over_rows ? rows : weight;
  loss[0] = divisor > 0 ? sum / divisor : NAN;
  mean_weight[0] = rows > 0 ? weight / rows : 0.0f;
}

/* The sum of the weights of all rows. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void sum_weights(int rows, int classes, int ignored, IN(int, labels), IN(float, weights),
                 OUT(float, result)) {
  __local float scratch[64];
  USE_IN(int, labels);
  USE_IN(float, weights);
  USE_OUT(float, result);
  float sum = 0;
  for (int row = get_local_id(0); row < rows; row += 64) {
    const int label = labels[row];
    if (label != ignored)
      sum += weights && label >= 0 && label < classes ? weights[label] : 1.0f;
  }
  sum = group_sum(scratch, sum);
  if (get_local_id(0) == 0) result[0] = sum;
}

/* (probability * sum of coefficients - coefficient) * dloss / divisor. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void loss_gradient(int rows, int classes, float smoothing, int ignored, int over_rows,
                   IN(float, logits), IN(int, labels), IN(float, shares), IN(float, weights),
                   IN(float, log_sums), IN(float, dloss), IN(float, total_weight),
                   OUT(float, gradient)) {
  __local float scratch[64];
  USE_IN(float, logits);
  USE_IN(int, labels);
  USE_IN(float, shares);
  USE_IN(float, weights);
  USE_IN(float, log_sums);
  USE_IN(float, dloss);
  USE_IN(float, total_weight);
  USE_OUT(float, gradient);
  const int row = get_group_id(0), l = get_local_id(0);
  logits += (long)row * classes;
  gradient += (long)row * classes;
  if (shares) shares += (long)row * classes;
  const float divisor = over_rows || !labels ? rows : total_weight[0];
  const float scale = divisor > 0 ? dloss[0] / divisor : 0.0f;
  const float smooth = smoothing / classes, sharp = 1 - smoothing;
  const int label = labels ? labels[row] : -1;
  const bool counts = !labels || label != ignored;
  const float extra =
      labels && counts && label >= 0 && label < classes ? sharp * (weights ? weights[label] : 1.0f)
                                                        : 0.0f;
  const bool dense = shares || smooth != 0;
  float total = 0;
  if (dense)
    for (int i = l; i < classes; i += 64) total += coefficient(i, smooth, sharp, shares, weights);
  total = group_sum(scratch, total) + extra;
  const float largest = log_sums[2 * row], rest = log_sums[2 * row + 1];
  for (int i = l; i < classes; i += 64) {
    float value = exp(logits[i] - largest - rest) * total;
    if (dense) value -= coefficient(i, smooth, sharp, shares, weights);
    value *= scale;
    if (i == label) value -= extra * scale;
    gradient[i] = counts ? value : 0.0f;
  }
}
)";

// The target of a loss. From `first` on, the inputs are scores, labels or class probabilities, and
// optional class weights.
struct LossTarget {
  bool labels, weights, over_rows;
  float smoothing;
  int64_t ignored;
  int first;

  LossTarget(const KernelRequest& request, int first)
      : labels(request.in_type(first + 1) == DType::i32),
        weights(request.inputs() > first + 2),
        over_rows(request.attributes().flag("over_rows")),
        smoothing(static_cast<float>(request.attributes().number("label_smoothing"))),
        ignored(request.attributes().integer("ignore_index")),
        first(first) {}

  const void* labels_in(const KernelRun& run) const {
    return labels ? run.inputs[static_cast<size_t>(first + 1)] : nullptr;
  }
  const void* shares_in(const KernelRun& run) const {
    return labels ? nullptr : run.inputs[static_cast<size_t>(first + 1)];
  }
  const void* weights_in(const KernelRun& run) const {
    return weights ? run.inputs[static_cast<size_t>(first + 2)] : nullptr;
  }
};

Kernel make_cross_entropy(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel losses = device.kernel(kLossSource, "row_losses");
  const BuiltKernel mean = device.kernel(kLossSource, "mean_loss");
  const LossTarget target(request, 0);
  const Rows all = rows_of(request.in(0));
  return {
      {}, static_cast<size_t>(2 * all.rows) * sizeof(float), [=, &device](const KernelRun& run) {
        device.run(losses, groups(all.rows),
                   {all.columns, target.smoothing, target.ignored, run.in(0), target.labels_in(run),
                    target.shares_in(run), target.weights_in(run), run.out(1), run.workspace});
        device.run(
            mean, groups(1),
            {all.rows, target.over_rows || !target.labels, run.workspace, run.out(0), run.out(2)});
      }};
}

Kernel make_cross_entropy_backward(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel weights = device.kernel(kLossSource, "sum_weights");
  const BuiltKernel gradient = device.kernel(kLossSource, "loss_gradient");
  const LossTarget target(request, 2);
  const Rows all = rows_of(request.in(2));
  return {{},
          sizeof(float),
          [=, &device](const KernelRun& run) {
            if (target.labels)
              device.run(weights, groups(1),
                         {all.rows, all.columns, target.ignored, target.labels_in(run),
                          target.weights_in(run), run.workspace});
            device.run(gradient, groups(all.rows),
                       {all.rows, all.columns, target.smoothing, target.ignored, target.over_rows,
                        run.in(2), target.labels_in(run), target.shares_in(run),
                        target.weights_in(run), run.in(1), run.in(0), run.workspace, run.out(0)});
          },
          {{0, 2}}};
}

constexpr std::string_view kClassSource = R"(
/* The place of the largest score; NaN is larger than any number. */
__kernel void argmax(int rows, int classes, IN(float, scores), OUT(int, result)) {
  USE_IN(float, scores);
  USE_OUT(int, result);
  const int row = get_global_id(0);
  if (row >= rows) return;
  scores += (long)row * classes;
  int best = 0;
  for (int i = 1; i < classes && !isnan(scores[best]); ++i)
    if (!(scores[i] <= scores[best])) best = i;
  result[row] = best;
}

/* Of each row: whether its label is among the k best, and whether it counts. */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void rank_label(int classes, int k, int ignored, IN(float, scores), IN(int, labels),
                OUT(float, counts)) {
  __local float scratch[64];
  USE_IN(float, scores);
  USE_IN(int, labels);
  USE_OUT(float, counts);
  const int row = get_group_id(0), label = labels[row];
  scores += (long)row * classes;
  const bool known = label >= 0 && label < classes;
  float before = 0;
  if (known)
    for (int i = get_local_id(0); i < classes; i += 64)
      if (i != label)
        before += i < label ? !(scores[i] < scores[label]) : !(scores[i] <= scores[label]);
  before = group_sum(scratch, before);
  if (get_local_id(0) > 0) return;
  counts[2 * row] = label != ignored && known && before < k ? 1.0f : 0.0f;
  counts[2 * row + 1] = label != ignored ? 1.0f : 0.0f;
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void add_counts(int rows, IN(float, counts), OUT(float, result)) {
  __local float scratch[64];
  USE_IN(float, counts);
  USE_OUT(float, result);
  float top = 0, counted = 0;
  for (int row = get_local_id(0); row < rows; row += 64) {
    top += counts[2 * row];
    counted += counts[2 * row + 1];
  }
  top = group_sum(scratch, top);
  counted = group_sum(scratch, counted);
  if (get_local_id(0) > 0) return;
  result[0] = top;
  result[1] = counted;
}
)";

Kernel make_argmax(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel kernel = device.kernel(kClassSource, "argmax");
  const Rows all = rows_of(request.in(0));
  return {{}, 0, [=, &device](const KernelRun& run) {
            device.run(kernel, items(all.rows), {all.rows, all.columns, run.in(0), run.outputs[0]});
          }};
}

Kernel make_count_top(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel rank = device.kernel(kClassSource, "rank_label");
  const BuiltKernel add = device.kernel(kClassSource, "add_counts");
  const Rows all = rows_of(request.in(0));
  const int64_t k = request.attributes().integer("k");
  const int64_t ignored = request.attributes().integer("ignore_index");
  return {
      {}, static_cast<size_t>(2 * all.rows) * sizeof(float), [=, &device](const KernelRun& run) {
        device.run(rank, groups(all.rows),
                   {all.columns, k, ignored, run.in(0), run.inputs[1], run.workspace});
        device.run(add, groups(1), {all.rows, run.workspace, run.out(0)});
      }};
}

}  // namespace

std::vector<KernelDefinition> loss_kernels() {
  return {{"cross_entropy", make_cross_entropy},
          {"cross_entropy_backward", make_cross_entropy_backward},
          {"argmax", make_argmax},
          {"count_top", make_count_top}};
}

}  // namespace artel::opencl
