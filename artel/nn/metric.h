// Metrics: what is reported beside the loss.
//
// A metric is an output of the compiled network with a reduction. Its sums, a few numbers for each
// batch, are computed beside the loss, added over lanes, workers and batches, and turned into one
// number at the end. So it is exact for data of any size, does not depend on the number of workers
// (it adds what was counted, never means), and the network's outputs are not copied for it. A
// metric that no sums can give exactly may ask for all rows of a test.
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
  // Adds the nodes that make sums of a batch, f32 of any shape that does not depend on the number
  // of its rows. Throws for predictions or targets that it is not for.
  std::function<Value(Value prediction, Value target)> sums;
  // Makes one number of the sums over all batches. Absent: the sums are the result, like those of a
  // confusion matrix.
  std::function<double(std::span<const double> sums)> value = {};
  bool less_is_better = false;  // for choosing the best epoch
  bool has_unit = false;        // that of the values
  // Left out where it is not for the network's predictions and targets, instead of an error.
  bool where_it_fits = false;
  // In a test, instead of the sums: f32 [rows, n], some numbers for each row, and what those of all
  // rows make, one after another in any order. Absent: there are sums only.
  std::function<Value(Value prediction, Value target)> rows = {};
  std::function<double(std::span<const float> rows)> value_of_rows = {};
};

// Throws for a name that is taken. All workers register the same ones.
void register_metric(Metric metric);

// Those that come with Artel, for rows of scores with a class each (i32 labels, of which cross
// entropy ignores -100; or shares of classes, of which the largest counts; one score a row stands
// for class 1 against 0):
//   accuracy          the share of rows whose largest score is the label's, the first of equal ones
//   top 5             the share of rows whose label is among the five largest
//   perplexity        exp of the mean cross entropy
//   precision, recall, f1
//                     of class 1 if there are two classes, else the mean over those that occur
//   auc               of two classes: how often a row of class 1 has a higher score than one of
//                     class 0 (the area under the ROC curve); exact in a test, and in training
//                     counted in 4096 bins of scores
//   confusion matrix  [label, answer]: how often each was given for each; not a single number
//   per class         [3, classes]: right answers, answers, labels; see class_scores
// and for values:
//   mean absolute error, root mean squared error
//   r2                the share of the variance that is explained: 1 is perfect, 0 no better than
//                     the mean
// Throws for other names, with the nearest known one.
const Metric& metric_by_name(std::string_view name);
std::vector<Metric> metrics_by_name(const std::vector<std::string>& names);
std::vector<std::string> metric_names();
// Like "top 5".
Metric top_k(int64_t k);

// For metrics of your own: two sums, and the first over the second (0 if that is 0).
Value metric_sums(Value sum, int64_t count);
double ratio(std::span<const double> sums);

// What a metric came to.
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
  Metrics(const std::vector<Metric>& metrics, const Graph& graph, bool in_test = false);

  // Those of sums that were counted elsewhere, of these shapes.
  Metrics(const std::vector<Metric>& metrics, const std::vector<Shape>& shapes);

  // Adds an output for each metric: its sums or, in a test, its rows if it has any.
  static void add_to(Graph& graph, const std::vector<Metric>& metrics, Value prediction,
                     Value target, bool in_test = false);
  static std::string output_of(const std::string& metric) { return "metric " + metric; }

  struct Part {
    Metric metric;
    std::string output;
    Shape shape;                  // of its sums
    size_t offset = 0, size = 0;  // where they are among all
    size_t width = 0;             // numbers of each row, which it has instead; 0: it has sums
  };
  const std::vector<Part>& parts() const { return parts_; }
  size_t sums() const { return sums_; }  // of all together
  // Null if there is none of that name.
  const Metric* find(std::string_view name) const;

  // `rows`: of each part that has them instead of sums.
  std::vector<MetricValue> values(std::span<const double> sums,
                                  const std::vector<std::vector<float>>& rows = {}) const;

 private:
  std::vector<Part> parts_;
  size_t sums_ = 0;
};

// What the sums of "per class" say of each class.
struct ClassScores {
  double precision = 0, recall = 0, f1 = 0;
  int64_t labels = 0;
};
std::vector<ClassScores> class_scores(const MetricValue& per_class);

// Null if there is none of that name.
const MetricValue* find_metric(const std::vector<MetricValue>& values, std::string_view name);
// "accuracy", or 0.
double accuracy_of(const std::vector<MetricValue>& values);

}  // namespace artel
