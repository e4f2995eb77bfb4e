#include "artel/run/report/class_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/observe/table.h"
#include "artel/run/config/setup.h"

namespace artel {
namespace {

constexpr const char* kPerClass = "per class";
constexpr const char* kConfusion = "confusion matrix";

// A network may have more outputs than the data has classes.
std::string name_at(const std::vector<std::string>& classes, size_t index) {
  return index < classes.size() ? classes[index] : std::to_string(index);
}

std::string table_of_classes(const MetricValue& metric, const std::vector<std::string>& classes) {
  observe::Table table({"class", "precision", "recall", "f1", "samples"});
  const std::vector<ClassScores> scores = class_scores(metric);
  for (size_t i = 0; i < scores.size(); ++i)
    table.add({name_at(classes, i), fmt::format("{:.4f}", scores[i].precision),
               fmt::format("{:.4f}", scores[i].recall), fmt::format("{:.4f}", scores[i].f1),
               format_count(scores[i].labels)});
  return table.text();
}

observe::Matrix matrix_of(const MetricValue& metric, const std::vector<std::string>& classes) {
  observe::Matrix matrix{.title = metric.name,
                         .row_label = "label",
                         .column_label = "answer",
                         .names = {},
                         .counts = metric.sums};
  for (int64_t i = 0; i < metric.shape[0]; ++i)
    matrix.names.push_back(name_at(classes, static_cast<size_t>(i)));
  return matrix;
}

// One line for each row of the sums.
std::string text_of_rows(const MetricValue& metric) {
  const size_t columns = metric.shape.rank() > 0 ? static_cast<size_t>(metric.shape.back()) : 1;
  std::string text;
  for (size_t i = 0; i < metric.sums.size(); ++i)
    text += fmt::format("{:g}{}", metric.sums[i], (i + 1) % columns == 0 ? "\n" : " ");
  return text;
}

}  // namespace

std::vector<std::string> names_of_classes(const data::SampleLayout& layout) {
  std::vector<std::string> names;
  for (int64_t i = 0; i < layout.classes; ++i) names.push_back(class_name(layout, i));
  return names;
}

nlohmann::ordered_json to_json(const MetricValue& metric, const std::vector<std::string>& classes) {
  if (metric.single) return metric.value;
  if (metric.name == kPerClass) {
    nlohmann::ordered_json json = nlohmann::ordered_json::object();
    const std::vector<ClassScores> scores = class_scores(metric);
    for (size_t i = 0; i < scores.size(); ++i)
      json[name_at(classes, i)] = {{"precision", scores[i].precision},
                                   {"recall", scores[i].recall},
                                   {"f1", scores[i].f1},
                                   {"samples", scores[i].labels}};
    return json;
  }
  if (metric.shape.rank() != 2) return metric.sums;
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (int64_t row = 0; row < metric.shape[0]; ++row) {
    const auto first = metric.sums.begin() + row * metric.shape[1];
    rows.push_back(std::vector<double>(first, first + metric.shape[1]));
  }
  return rows;
}

std::string text_of_details(const std::vector<MetricValue>& metrics,
                            const std::vector<std::string>& classes) {
  std::string text;
  for (const MetricValue& metric : metrics) {
    if (metric.single) continue;
    if (metric.name == kPerClass)
      text += table_of_classes(metric, classes);
    else if (metric.name == kConfusion)
      text += fmt::format("{}\n{}", metric.name, observe::matrix_text(matrix_of(metric, classes)));
    else
      text += fmt::format("{}\n{}", metric.name, text_of_rows(metric));
  }
  return text;
}

std::string confusion_svg(const std::vector<MetricValue>& metrics,
                          const std::vector<std::string>& classes) {
  const MetricValue* const metric = find_metric(metrics, kConfusion);
  return metric ? observe::matrix_svg(matrix_of(*metric, classes)) : "";
}

data::Picture confusion_picture(const MetricValue& matrix) {
  constexpr int64_t kSide = 400;                  // pixels, about
  constexpr double kDark[] = {0x1f, 0x77, 0xb4};  // as in the SVG
  const int64_t size = matrix.shape[0], cell = std::max<int64_t>(1, kSide / size);
  data::Picture picture{.height = size * cell, .width = size * cell, .channels = 3, .samples = {}};
  std::vector<double> totals(static_cast<size_t>(size));
  for (size_t i = 0; i < matrix.sums.size(); ++i)
    totals[i / static_cast<size_t>(size)] += matrix.sums[i];
  for (int64_t y = 0; y < picture.height; ++y)
    for (int64_t x = 0; x < picture.width; ++x) {
      const double total = totals[static_cast<size_t>(y / cell)];
      const double count = matrix.sums[static_cast<size_t>(y / cell * size + x / cell)];
      const double share = total > 0 ? count / total : 0;
      for (const double dark : kDark)
        picture.samples.push_back(static_cast<uint8_t>(std::lround(255 + (dark - 255) * share)));
    }
  return picture;
}

}  // namespace artel
