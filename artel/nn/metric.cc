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

// The same with a row for each of the three.
Value count_per_class(Value prediction, Value target) {
  return reshape(count_classes(prediction, target), {3, -1});
}

// Scores of class 1 are counted in kBins * kBins bins, finer near 0: x / (1 + |x|), which lies
// between -1 and 1, is cut into kBins coarse bins, and each of these into kBins fine ones.
constexpr int64_t kBins = 64;

// [rows, kBins]: 1 at the bin of each x [rows, 1] in [0, kBins * width). Exact, because widths are
// powers of two. `rest` is what lies beyond the bin's lower edge.
Value bins_of(Value x, double width, Value& rest) {
  std::vector<float> edges;
  for (int64_t i = 1; i < kBins; ++i)
    edges.push_back(static_cast<float>(static_cast<double>(i) * width));
  const Value edge = x.graph().constant("edges", Tensor::from<float>({1, kBins - 1}, edges));
  const Value below = greater(edge, x);  // 1 where x < edge
  const Value reached = add_scalar(mul_scalar(below, -1), 1);
  rest = sub(x, mul_scalar(sum(reached, {1}, true), width));
  const Value ones = add_scalar(mul_scalar(x, 0), 1);
  return sub(concat({ones, reached}, 1), concat({reached, mul_scalar(x, 0)}, 1));
}

// [rows, 1]: by how much that of class 1 is higher than that of class 0.
Value score_of(const Answers& answers) {
  const Value& scores = answers.scores;
  require(scores.shape().back() == 2, ErrorKind::shape,
          "got scores of {} classes, expected two; try \"f1\" for more", scores.shape().back());
  return sub(slice(scores, 1, 1, 2), slice(scores, 1, 0, 1));
}

// [2, bins]: how many rows of class 0 and of class 1 have a score in each bin.
Value count_scores(Value prediction, Value target) {
  const Answers a = answers(prediction, target);
  const Value score = score_of(a);
  const Value squashed = add_scalar(div(score, add_scalar(unary("abs", score), 1)), 1);
  constexpr double kCoarse = 2.0 / kBins, kFine = kCoarse / kBins;
  Value within, rest;
  const Value coarse = bins_of(squashed, kCoarse, within);
  const Value fine = bins_of(within, kFine, rest);
  const Value labels = one_hot(a.labels, 2);
  std::vector<Value> counts;
  for (int64_t c = 0; c < 2; ++c)
    counts.push_back(
        reshape(matmul(mul(coarse, slice(labels, 1, c, c + 1)), fine, {.transpose_a = true}),
                {1, kBins * kBins}));
  return concat(counts, 0);
}

// [rows, 3]: the score, and whether it is one of class 0 or of class 1; neither if it is ignored.
Value score_rows(Value prediction, Value target) {
  const Answers a = answers(prediction, target);
  return concat({score_of(a), one_hot(a.labels, 2)}, 1);
}

// How often a row of class 1 has a higher score than one of class 0; equal scores count half.
double auc_of_rows(std::span<const float> rows) {
  struct Row {
    float score;
    bool one;
  };
  std::vector<Row> all;
  for (size_t i = 0; i + 3 <= rows.size(); i += 3) {
    if (rows[i + 1] + rows[i + 2] == 0) continue;
    if (std::isnan(rows[i])) return std::numeric_limits<double>::quiet_NaN();
    all.push_back({rows[i], rows[i + 2] > 0});
  }
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
  return below > 0 && ones > 0 ? pairs / (below * ones) : 0.5;
}

// The same of bins.
double auc(std::span<const double> sums) {
  const size_t bins = sums.size() / 2;
  double below = 0, pairs = 0, ones = 0;  // `below`: rows of class 0 in lower bins
  for (size_t bin = 0; bin < bins; ++bin) {
    pairs += sums[bins + bin] * (below + sums[bin] / 2);
    below += sums[bin];
    ones += sums[bins + bin];
  }
  return below > 0 && ones > 0 ? pairs / (below * ones) : 0.5;
}

// Of class 1 if there are two, else the mean over the classes that occur. `of` sees the counts of
// one class.
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

// Of the squared errors, their number, and exactly of the values and of their squares: the variance
// is the small difference of two large numbers if the values have a large mean.
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
    for (Metric& metric :
         std::vector<Metric>{accuracy,
                             top_k(5),
                             {"perplexity", sum_cross_entropy,
                              [](std::span<const double> sums) { return std::exp(ratio(sums)); },
                              /*less_is_better=*/true},
                             {"precision", count_classes, precision},
                             {"recall", count_classes, recall},
                             {"f1", count_classes, f1},
                             {.name = "auc",
                             .sums = count_scores,
                             .value = auc,
                             .rows = score_rows,
                             .value_of_rows = auc_of_rows},
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
std::optional<Value> output_for(const Metric& metric, Value prediction, Value target,
                                bool in_test) {
  try {
    return with_where(fmt::format("metric '{}'", metric.name), [&] {
      const bool rows = in_test && metric.rows;
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
  require_function("metric", metric.name, metric.sums);
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

Metrics::Metrics(const std::vector<Metric>& metrics, const Graph& graph, bool in_test) {
  for (const Metric& metric : metrics_in(graph, metrics)) {
    Part part = {.metric = metric, .output = output_of(metric.name), .shape = {}, .offset = sums_};
    const Shape& shape = graph.type(graph.output_id(part.output)).shape;
    if (in_test && metric.rows) {
      part.width = static_cast<size_t>(shape.back());
    } else {
      part.shape = shape;
      part.size = static_cast<size_t>(shape.elements());
    }
    sums_ += part.size;
    parts_.push_back(std::move(part));
  }
}

void Metrics::add_to(Graph& graph, const std::vector<Metric>& metrics, Value prediction,
                     Value target, bool in_test) {
  for (const Metric& metric : metrics) {
    const std::string output = output_of(metric.name);
    require(!graph.has_output(output), ErrorKind::invalid_argument,
            "[metric '{}'] is asked for twice, expected once", metric.name);
    const Graph::Scope scope(graph, output);
    const std::optional<Value> made = output_for(metric, prediction, target, in_test);
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
    const std::span<const double> own = sums.subspan(part.offset, part.size);
    const bool single = part.width > 0 || part.metric.value;
    const auto value = [&] {
      return part.width > 0 ? part.metric.value_of_rows(rows.at(i)) : part.metric.value(own);
    };
    values.push_back({.name = part.metric.name,
                      .single = single,
                      .value = single ? value() : 0,
                      .shape = part.shape,
                      .sums = {own.begin(), own.end()}});
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
