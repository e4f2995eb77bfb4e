#include "artel/nn/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "artel/base/registry.h"
#include "artel/base/with_where.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/limbs.h"
#include "artel/nn/loss.h"

namespace artel {
namespace {

// [rows, 1] with `other` before it.
Value beside(Value other, Value x) { return concat({other, x}, 1); }

// Rows of scores with a label each.
struct Answers {
  Value scores, labels;
};

Answers answers(Value prediction, Value target) {
  const Shape &scores = prediction.shape(), &targets = target.shape();
  const bool labels = target.type().dtype == DType::i32;
  if (scores.elements() == targets.elements() &&
      (labels || scores.rank() < 2 || scores.back() == 1)) {
    // One score a row: that of class 1, where class 0 has the score 0.
    const Value x = reshape(prediction, {-1, 1}), t = reshape(target, {-1, 1});
    const Value half = add_scalar(mul_scalar(t, 0), 0.5);
    return {beside(mul_scalar(x, 0), x), labels ? reshape(target, {-1}) : argmax(beside(half, t))};
  }
  const bool fit =
      scores.rank() >= 2 && scores.back() > 0 &&
      (labels ? targets.elements() == scores.elements() / scores.back() : targets == scores);
  require(fit, ErrorKind::shape,
          "got targets {} for the network's output {}, expected a class for each row of scores",
          to_string(target.type()), to_string(scores));
  const auto [rows, own] = class_rows(prediction, target);
  return {rows, labels ? reshape(own, {-1}) : argmax(own)};
}

Value count_confusion(Value prediction, Value target) {
  const Answers a = answers(prediction, target);
  const int64_t classes = a.scores.shape().back();
  return matmul(one_hot(a.labels, classes), one_hot(argmax(a.scores), classes),
                {.transpose_a = true});
}

// For each class how often it was answered rightly, answered, and to be answered.
Value count_classes(Value prediction, Value target) {
  const Answers a = answers(prediction, target);
  const int64_t classes = a.scores.shape().back();
  const Value labels = one_hot(a.labels, classes);
  const Value counted = sum(labels, {1}, true);  // 0 where the label is ignored
  const Value given = mul(one_hot(argmax(a.scores), classes), counted);
  return concat({sum(mul(labels, given), {0}), sum(given, {0}), sum(labels, {0})}, 0);
}

// The same with one row for each of the three.
Value count_per_class(Value prediction, Value target) {
  return reshape(count_classes(prediction, target), {3, -1});
}

// [rows, 1]: by how much that of class 1 is higher than that of class 0.
Value score_of(const Answers& answers) {
  const Value& scores = answers.scores;
  require(scores.shape().back() == 2, ErrorKind::shape,
          "got scores of {} classes, expected two; try \"f1\" for more", scores.shape().back());
  return sub(slice(scores, 1, 1, 2), slice(scores, 1, 0, 1));
}

// [rows, 3]: the score, then 1 for rows of class 0, then 1 for rows of class 1. Ignored rows have
// 0.
Value score_rows(Value prediction, Value target) {
  const Answers a = answers(prediction, target);
  return concat({score_of(a), one_hot(a.labels, 2)}, 1);
}

// The number of pairs of a row of class 1 and one of class 0 in which class 1 has the higher score,
// and the number of pairs. Equal scores count half.
std::vector<double> ordered_pairs(std::span<const float> rows) {
  struct Row {
    float score;
    bool one;
  };
  std::vector<Row> all;
  bool known = true;
  for (size_t i = 0; i + 3 <= rows.size(); i += 3) {
    if (rows[i + 1] + rows[i + 2] == 0) continue;
    known = known && !std::isnan(rows[i]);
    all.push_back({rows[i], rows[i + 2] > 0});
  }
  if (!known) return {std::numeric_limits<double>::quiet_NaN(), 1};
  std::ranges::sort(all, {}, &Row::score);
  double below = 0, pairs = 0, ones = 0;  // `below`: rows of class 0 with lower scores
  for (size_t first = 0; first < all.size();) {
    double equal_zeros = 0, equal_ones = 0;
    const float score = all[first].score;
    for (; first < all.size() && all[first].score == score; ++first)
      (all[first].one ? equal_ones : equal_zeros) += 1;
    pairs += equal_ones * (below + equal_zeros / 2);
    below += equal_zeros;
    ones += equal_ones;
  }
  return {pairs, below * ones};
}

double auc(std::span<const double> sums) { return sums[1] == 0 ? 0.5 : sums[0] / sums[1]; }

// The value of class 1 if there are two, else the mean over the classes that occur. `of` computes
// it from the counts of one class.
double over_classes(std::span<const double> sums,
                    double (*of)(double right, double given, double labels)) {
  const size_t classes = sums.size() / 3;
  const auto value = [&](size_t c) {
    return of(sums[c], sums[classes + c], sums[2 * classes + c]);
  };
  if (classes == 2) return value(1);
  double total = 0, occurring = 0;
  for (size_t c = 0; c < classes; ++c) {
    if (sums[classes + c] + sums[2 * classes + c] == 0) continue;
    total += value(c);
    occurring += 1;
  }
  return occurring > 0 ? total / occurring : 0;
}

double quotient(double a, double b) { return b == 0 ? 0 : a / b; }

double precision(std::span<const double> sums) {
  return over_classes(sums,
                      [](double right, double given, double) { return quotient(right, given); });
}

double recall(std::span<const double> sums) {
  return over_classes(sums,
                      [](double right, double, double labels) { return quotient(right, labels); });
}

double f1(std::span<const double> sums) {
  return over_classes(sums, [](double right, double given, double labels) {
    return quotient(2 * right, given + labels);
  });
}

// The sum of the cross entropies, and the number of labels.
Value sum_cross_entropy(Value prediction, Value target) {
  const Answers a = answers(prediction, target);
  const Value labels = slice(count_top(a.scores, a.labels), 0, 1, 2);
  const Value total = mul(cross_entropy(a.scores, a.labels), labels);  // NaN without any label
  return concat({select(labels, total, mul_scalar(labels, 0)), labels}, 0);
}

Value sum_distances(Value prediction, Value target) {
  const int64_t count = prediction.shape().elements();
  return metric_sums(mul_scalar(l1_loss(prediction, target), static_cast<double>(count)), count);
}

Value sum_squares(Value prediction, Value target) {
  const int64_t count = prediction.shape().elements();
  return metric_sums(mul_scalar(mean_squared_error(prediction, target), static_cast<double>(count)),
                     count);
}

// Sums of the squared errors, their number, and exact sums of the values and of their squares,
// because the variance is the small difference of two large numbers if the values have a large
// mean.
Value sum_variances(Value prediction, Value target) {
  return concat(
      {sum_squares(prediction, target), limb_sums(target, false), limb_sums(target, true)}, 0);
}

double r2(std::span<const double> sums) {
  const double errors = sums[0], count = sums[1];
  const long double total = value_of_limbs(sums.subspan(2, kLimbs));
  const long double squares = value_of_limbs(sums.subspan(2 + kLimbs, kLimbs));
  const auto variance = static_cast<double>(squares - (count > 0 ? total * total / count : 0));
  return variance > 0 ? 1 - errors / variance : 0;
}

Registry<Metric>& registry() {
  static Registry<Metric> all("metric", [] {
    Metric accuracy = top_k(1);
    accuracy.name = "accuracy";
    Registry<Metric>::Entries entries;
    for (Metric& metric : std::vector<Metric>{
             accuracy,
             top_k(5),
             {"perplexity", sum_cross_entropy,
              [](std::span<const double> sums) { return std::exp(ratio(sums)); },
              /*less_is_better=*/true},
             {"precision", count_classes, precision},
             {"recall", count_classes, recall},
             {"f1", count_classes, f1},
             {.name = "auc", .value = auc, .rows = score_rows, .sums_of_rows = ordered_pairs},
             {"mean absolute error", sum_distances, ratio, /*less_is_better=*/true,
              /*has_unit=*/true},
             {"root mean squared error", sum_squares,
              [](std::span<const double> sums) { return std::sqrt(ratio(sums)); },
              /*less_is_better=*/true, /*has_unit=*/true},
             {"r2", sum_variances, r2},
             {"confusion matrix", count_confusion, {}},
             {"per class", count_per_class, {}}})
      entries.emplace_back(metric.name, metric);
    return entries;
  }());
  return all;
}

std::vector<Metric> metrics_in(const Graph& graph, const std::vector<Metric>& metrics) {
  std::vector<Metric> present;
  for (const Metric& metric : metrics)
    if (!metric.where_it_fits || graph.has_output(Metrics::output_of(metric.name)))
      present.push_back(metric);
  return present;
}

// The sums of the metric, or its rows. Nothing where it is not for these values and need not be.
std::optional<Value> output_for(const Metric& metric, Value prediction, Value target) {
  try {
    return with_where(fmt::format("metric '{}'", metric.name), [&] {
      const bool rows = static_cast<bool>(metric.rows);
      const Value made = (rows ? metric.rows : metric.sums)(prediction, target);
      require(static_cast<bool>(made), ErrorKind::invalid_argument,
              "returned an empty value, expected its {}", rows ? "rows" : "sums");
      require(!rows || made.shape().rank() == 2, ErrorKind::shape,
              "got rows {}, expected some numbers for each row", to_string(made.shape()));
      return made;
    });
  } catch (const Error& error) {
    if (!metric.where_it_fits || error.kind() != ErrorKind::shape) throw;
    return {};
  }
}

}  // namespace

void register_metric(Metric metric) {
  require_function("metric", metric.name, metric.rows ? metric.rows : metric.sums);
  if (metric.rows) require_function("metric", metric.name, metric.sums_of_rows);
  std::string name = metric.name;
  registry().add(std::move(name), std::move(metric));
}

const Metric& metric_by_name(std::string_view name) { return registry().at(name); }

std::vector<Metric> metrics_by_name(const std::vector<std::string>& names) {
  std::vector<Metric> metrics;
  for (const std::string& name : names) metrics.push_back(metric_by_name(name));
  return metrics;
}

std::vector<std::string> metric_names() { return registry().names(); }

std::vector<std::string> metrics_for(const TensorType& prediction, const TensorType& target) {
  std::vector<std::string> names;
  for (const std::string& name : metric_names()) {
    const Metric& metric = metric_by_name(name);
    Graph graph;
    try {
      if (!metric.value) continue;
      output_for(metric, graph.input("prediction", prediction), graph.input("target", target));
      names.push_back(name);
    } catch (const Error&) {  // does not accept such values
    }
  }
  return names;
}

Metric top_k(int64_t k) {
  return {"top " + std::to_string(k),
          [k](Value prediction, Value target) {
            const Answers a = answers(prediction, target);
            return count_top(a.scores, a.labels, k);
          },
          ratio};
}

Value metric_sums(Value sum, int64_t count) {
  const auto number = static_cast<float>(count);
  return concat(
      {reshape(sum, {1}), sum.graph().constant("count", Tensor::from<float>({1}, {number}))}, 0);
}

double ratio(std::span<const double> sums) {
  require(sums.size() == 2, ErrorKind::invalid_argument,
          "ratio of sums: got {}, expected 2, as metric_sums makes them", sums.size());
  return quotient(sums[0], sums[1]);
}

Metrics::Metrics(const std::vector<Metric>& metrics, const std::vector<Shape>& shapes) {
  for (size_t i = 0; i < metrics.size(); ++i) {
    const auto size = static_cast<size_t>(shapes[i].elements());
    parts_.push_back({metrics[i], output_of(metrics[i].name), shapes[i], sums_, size});
    sums_ += size;
  }
}

Metrics::Metrics(const std::vector<Metric>& metrics, const Graph& graph) {
  for (const Metric& metric : metrics_in(graph, metrics)) {
    Part part = {.metric = metric, .output = output_of(metric.name), .shape = {}, .offset = sums_};
    part.shape = graph.type(graph.output_id(part.output)).shape;
    if (metric.rows) {
      part.width = static_cast<size_t>(part.shape.back());
      part.shape = {std::ssize(metric.sums_of_rows({}))};
    }
    part.size = static_cast<size_t>(part.shape.elements());
    sums_ += part.size;
    parts_.push_back(std::move(part));
  }
}

void Metrics::add_to(Graph& graph, const std::vector<Metric>& metrics, Value prediction,
                     Value target) {
  for (const Metric& metric : metrics) {
    const std::string output = output_of(metric.name);
    require(!graph.has_output(output), ErrorKind::invalid_argument,
            "[metric '{}'] is asked for twice, expected once", metric.name);
    const Graph::Scope scope(graph, output);
    const std::optional<Value> made = output_for(metric, prediction, target);
    if (!made) continue;
    graph.set_output(output, made->type().dtype == DType::f32 ? *made : unary("to_f32", *made));
  }
}

const Metric* Metrics::find(std::string_view name) const {
  for (const Part& part : parts_)
    if (part.metric.name == name) return &part.metric;
  return nullptr;
}

std::vector<MetricValue> Metrics::values(std::span<const double> sums,
                                         const std::vector<std::vector<float>>& rows) const {
  std::vector<MetricValue> values;
  for (size_t i = 0; i < parts_.size(); ++i) {
    const Part& part = parts_[i];
    const std::span<const double> given = sums.subspan(part.offset, part.size);
    std::vector<double> own = part.width > 0 && !rows.empty()
                                  ? part.metric.sums_of_rows(rows[i])
                                  : std::vector<double>(given.begin(), given.end());
    const bool single = static_cast<bool>(part.metric.value);
    values.push_back({.name = part.metric.name,
                      .single = single,
                      .value = single ? part.metric.value(own) : 0,
                      .shape = part.shape,
                      .sums = std::move(own)});
  }
  return values;
}

const MetricValue* find_metric(const std::vector<MetricValue>& values, std::string_view name) {
  const auto found = std::find_if(values.begin(), values.end(),
                                  [&](const MetricValue& value) { return value.name == name; });
  return found == values.end() ? nullptr : &*found;
}

std::vector<ClassScores> class_scores(const MetricValue& per_class) {
  const size_t classes = per_class.sums.size() / 3;
  std::vector<ClassScores> scores;
  for (size_t c = 0; c < classes; ++c) {
    const double right = per_class.sums[c], given = per_class.sums[classes + c],
                 labels = per_class.sums[2 * classes + c];
    scores.push_back({.precision = quotient(right, given),
                      .recall = quotient(right, labels),
                      .f1 = quotient(2 * right, given + labels),
                      .labels = static_cast<int64_t>(labels)});
  }
  return scores;
}

double accuracy_of(const std::vector<MetricValue>& values) {
  const MetricValue* found = find_metric(values, "accuracy");
  return found ? found->value : 0;
}

}  // namespace artel
