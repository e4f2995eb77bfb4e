// Metrics reported next to the loss.
//
// A metric is an output of the compiled network with a reduction. Its sums, a few numbers per
// batch, are computed with the loss, added over lanes, workers, and batches, and reduced to one
// number at the end. So it is exact for data of any size, independent of the number of workers
// (counts are added, never means), and needs no copies of the network's outputs. A metric over
// several samples together gets the rows of a whole batch, or of a whole test.
//
//   const auto sums = [](artel::Value prediction, artel::Value target) {
//     const artel::Value off = artel::sub(prediction, target);
//     return artel::metric_sums(artel::sum(off), off.shape().elements());
//   };
//   artel::register_metric({.name = "bias", .sums = sums, .value = artel::ratio});
//   // From now on: train.metrics = ["bias"] in a TOML file, or TrainerOptions::metrics.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/graph/graph.h"

namespace artel {

struct Metric {
  std::string name;
  // Builds the sums of a batch: f32, with a shape that does not depend on the number of rows.
  // Throws for unsupported predictions or targets.
  std::function<Value(Value prediction, Value target)> sums = {};
  // Reduces the sums over all batches to one number. Empty if the sums are the result, as for a
  // confusion matrix.
  std::function<double(std::span<const double> sums)> value = {};
  bool less_is_better = false;  // for choosing the best epoch
  bool has_unit = false;        // the unit of the target values
  // If true, the metric is left out for unsupported predictions and targets instead of an error.
  bool where_it_fits = false;
  // Alternative to `sums` for metrics that need all rows: builds f32 [rows, n], and converts the
  // rows of a batch or test to sums. Rows arrive in any order, mixed with rows of zeros, which must
  // not change the result.
  std::function<Value(Value prediction, Value target)> rows = {};
  std::function<std::vector<double>(std::span<const float> rows)> sums_of_rows = {};
};

// Registers a custom metric. Replaces one that the program registered earlier. Throws for a
// built-in name. All workers must register the same metrics.
void register_metric(Metric metric);

// Finds a metric by name. Throws for an unknown name and suggests the nearest known one.
//
// For classes. Targets are i32 labels, without ignored ones (-100), or class probabilities, of
// which the largest counts. A single score per row is that of class 1 against class 0.
//   accuracy          share of rows with the label as the largest score; ties go to the first class
//   top 5             share of rows with the label among the five largest scores
//   perplexity        exp of the mean cross entropy
//   precision, recall, f1
//                     those of class 1 with two classes, otherwise the mean over occurring classes
//   auc               area under the ROC curve, for two classes; in training, for pairs in a batch
//   confusion matrix  [label, answer] counts; not a single number
//   per class         [3, classes]: correct answers, answers, labels; see class_scores
// For values:
//   mean absolute error, root mean squared error
//   r2                explained share of the variance: 1 is perfect, 0 no better than the mean
const Metric& metric_by_name(std::string_view name);
std::vector<Metric> metrics_by_name(const std::vector<std::string>& names);
std::vector<std::string> metric_names();
// The names of the metrics of one number that accept such predictions and targets.
std::vector<std::string> metrics_for(const TensorType& prediction, const TensorType& target);
// Like "top 5".
Metric top_k(int64_t k);

// For metrics of your own: two sums, and the first over the second (0 if that is 0).
Value metric_sums(Value sum, int64_t count);
double ratio(std::span<const double> sums);

// The value of a metric.
struct MetricValue {
  std::string name;
  bool single = true;  // it has one number
  double value = 0;
  Shape shape = {};  // of the sums
  std::vector<double> sums = {};
};

// The metrics of a compiled network, whose sums lie side by side in their order.
class Metrics {
 public:
  Metrics() = default;
  // `graph` has the outputs that add_to has given it.
  Metrics(const std::vector<Metric>& metrics, const Graph& graph);

  // For sums with these shapes that were computed elsewhere.
  Metrics(const std::vector<Metric>& metrics, const std::vector<Shape>& shapes);

  // Adds an output for each metric: its sums or its rows.
  static void add_to(Graph& graph, const std::vector<Metric>& metrics, Value prediction,
                     Value target);
  static std::string output_of(const std::string& metric) { return "metric " + metric; }

  struct Part {
    Metric metric;
    std::string output;
    Shape shape;                  // of its sums
    size_t offset = 0, size = 0;  // where they are among all
    size_t width = 0;             // numbers per row; 0 if the output has sums
  };
  const std::vector<Part>& parts() const { return parts_; }
  size_t sums() const { return sums_; }  // of all metrics
  // Null if no metric has that name.
  const Metric* find(std::string_view name) const;

  // Computes all metrics. `rows` are the rows of each part that has rows, which are converted to
  // sums first. If it is empty, `sums` is complete.
  std::vector<MetricValue> values(std::span<const double> sums,
                                  const std::vector<std::vector<float>>& rows = {}) const;

 private:
  std::vector<Part> parts_;
  size_t sums_ = 0;
};

// The sums of "per class" for a class.
struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;
  int64_t labels = 0;
};
std::vector<ClassScores> class_scores(const MetricValue& per_class);

// Null if no metric has that name.
const MetricValue* find_metric(const std::vector<MetricValue>& values, std::string_view name);
// "accuracy", or 0.
double accuracy_of(const std::vector<MetricValue>& values);

}  // namespace artel
