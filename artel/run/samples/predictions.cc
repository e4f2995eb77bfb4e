#include "artel/run/samples/predictions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "artel/data/tables/table_encoder.h"
#include "artel/predict/class_shares.h"

namespace artel {
namespace {

std::vector<size_t> largest_first(const std::vector<double>& shares, int64_t top) {
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t shown = std::min(order.size(), static_cast<size_t>(top));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
      [&](size_t a, size_t b) { return shares[a] != shares[b] ? shares[a] > shares[b] : a < b; });
  order.resize(shown);
  return order;
}

// As a field of CSV.
std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\n\r") == field.npos) return field;
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

}  // namespace

PredictionLines::PredictionLines(const data::SampleLayout& layout, const PredictionOptions& options)
    : layout_(layout), options_(options) {
  options_.raw = options_.raw || options_.output != "prediction";
}

std::string PredictionLines::name_of(const std::string& source, const SampleBatch& batch,
                                     int64_t row, int64_t rows) const {
  if (!batch.names.empty()) return batch.names[row];
  return rows == 1 && batch.first == 0 ? source : fmt::format("{}[{}]", source, batch.first + row);
}

std::string PredictionLines::of(const std::string& source, const SampleBatch& batch,
                                const Tensor& output) {
  const int64_t rows = output.shape()[0], columns = output.elements() / rows;
  if (std::exchange(options_.header, false) && options_.format == PredictionFormat::csv)
    add_header(columns, !batch.names.empty());
  // A column of a table is there from the first row or not at all.
  if (!named_) named_ = options_.format != PredictionFormat::csv || !batch.names.empty();
  for (int64_t row = 0; row < rows; ++row)
    add_row(*named_ ? name_of(source, batch, row, rows) : std::string(),
            output.values<float>().subspan(row * columns, columns));
  return std::exchange(text_, {});
}

void PredictionLines::add_header(int64_t columns, bool named) {
  std::vector<std::string> names;
  if (named) names.emplace_back("sample");
  if (options_.raw || layout_.classes == 0) {
    for (int64_t i = 0; i < columns; ++i)
      names.push_back(columns == 1 ? "prediction" : fmt::format("prediction {}", i + 1));
  } else {
    const int64_t shown = std::min(options_.top, std::max<int64_t>(2, columns));
    for (int64_t i = 1; i <= shown; ++i) {
      const std::string number = i == 1 ? "" : fmt::format(" {}", i);
      names.push_back("prediction" + number);
      names.push_back("probability" + number);
    }
  }
  text_ += join(names, ",") + '\n';
}

// Adds the sample's name before a prediction. Not for rows of a table in CSV, which keep their
// order.
void PredictionLines::add_name(const std::string& name) {
  if (options_.format != PredictionFormat::csv)
    text_ += name + ": ";
  else if (!name.empty())
    text_ += quoted(name) + ',';
}

void PredictionLines::add_row(const std::string& name, std::span<const float> scores) {
  if (options_.raw || layout_.classes == 0)
    add_values(name, scores);
  else
    add_classes(name, scores);
}

void PredictionLines::add_classes(const std::string& name, std::span<const float> scores) {
  const std::vector<double> shares = class_shares(scores);
  const std::vector<size_t> order = largest_first(shares, options_.top);
  const auto label = [&](size_t i) { return class_name(layout_, static_cast<int64_t>(order[i])); };
  if (options_.format == PredictionFormat::json) {
    nlohmann::ordered_json json = {
        {"sample", name}, {"prediction", label(0)}, {"probability", shares[order[0]]}};
    for (size_t i = 0; i < order.size(); ++i)
      json["top"].push_back({{"class", label(i)}, {"probability", shares[order[i]]}});
    text_ += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
    return;
  }
  const bool csv = options_.format == PredictionFormat::csv;
  add_name(name);
  for (size_t i = 0; i < order.size(); ++i)
    fmt::format_to(std::back_inserter(text_), "{}{}{}{:.4f}",
                   i == 0 ? ""
                   : csv  ? ","
                          : ", ",
                   csv ? quoted(label(i)) : label(i), csv ? "," : " ", shares[order[i]]);
  text_ += '\n';
}

void PredictionLines::add_values(const std::string& name, std::span<const float> scores) {
  const bool scaled = layout_.table && !options_.raw;
  const double offset = scaled ? layout_.table->target_offset() : 0;
  const double scale = scaled ? layout_.table->target_scale() : 1;
  std::vector<double> values;
  for (const float score : scores) values.push_back(offset + scale * score);
  if (options_.format == PredictionFormat::json) {
    nlohmann::ordered_json json = {{"sample", name}};
    if (values.size() == 1)
      json["prediction"] = values[0];
    else
      json["prediction"] = values;
    text_ += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
    return;
  }
  const bool csv = options_.format == PredictionFormat::csv;
  add_name(name);
  fmt::format_to(std::back_inserter(text_), "{:.7g}\n", fmt::join(values, csv ? "," : " "));
}

}  // namespace artel
