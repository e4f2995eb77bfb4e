#include "artel/data/tables/table_encoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"
#include "artel/data/cores.h"
#include "artel/data/spread.h"
#include "artel/data/tables/number.h"

namespace artel::data {
namespace {

// A table of names may become far larger than it is.
constexpr double kMostBytes = 0x1p31, kMostTimesLarger = 16;
constexpr int64_t kValuesAtATime = 1 << 16;  // of a thread: they stay in the cache
constexpr double kLargestClass = 0x1p53;     // larger whole numbers cannot be told apart

// Sorted as numbers if the column is numeric, so class "10" comes after "9".
std::vector<std::string> class_names(const Column& column, const std::vector<int64_t>& rows) {
  std::map<double, std::string> sorted;  // by number, or by the place among all categories
  for (const int64_t row : rows) {
    if (is_missing(column, row)) continue;
    const double place = column.categorical ? column.codes[row] : column.numbers[row];
    if (!sorted.contains(place)) sorted[place] = category_of(column, row);
  }
  std::vector<std::string> names;
  for (const auto& [number, name] : sorted) names.push_back(name);
  return names;
}

// Predictions are rounded to f32, so the values must differ by more than that rounding.
void check_digits(const Column& target, const std::vector<int64_t>& rows,
                  const std::string& where) {
  constexpr double kMostOfDeviation = 0.01;
  const Spread spread(target.numbers, rows);
  double worst = 0;
  for (const int64_t row : rows) {
    const auto rounded = static_cast<float>(target.numbers[row]);
    if (std::isfinite(rounded)) worst = std::max(worst, std::abs(target.numbers[row] - rounded));
  }
  require(spread.deviation == 0 || worst <= kMostOfDeviation * spread.deviation,
          ErrorKind::unsupported,
          "[{}] the target '{}' is {:.6g} with a deviation of {:.3g}, but 32-bit numbers round it "
          "by up to {:.3g}; try subtracting {:.6g} from the column",
          where, target.name, spread.mean, spread.deviation, worst, spread.mean);
}

// A column and, if it has categories, where each is among the inputs of its feature.
class ColumnWriter {
 public:
  ColumnWriter(const TableFeature& feature, const Table& table)
      : feature_(feature), table_(table), column_(find_column(table, feature.column)) {
    require(feature.kind != TableFeature::Kind::number || !column_.categorical, ErrorKind::corrupt,
            "[{}] column '{}' is categorical here, but not in the training rows", table.name,
            column_.name);
    require(feature.kind != TableFeature::Kind::date || column_.categorical, ErrorKind::corrupt,
            "[{}] column '{}' holds numbers here, but dates in the training rows", table.name,
            column_.name);
    if (feature.kind == TableFeature::Kind::date) return;
    std::vector<float> inputs(static_cast<size_t>(feature.width()));
    for (const std::string& name : column_.categories) {
      std::fill(inputs.begin(), inputs.end(), 0.0f);
      feature.write(name, inputs.data());
      const auto place = std::find(inputs.begin(), inputs.end(), 1.0f);
      places_.push_back(place == inputs.end() ? -1 : place - inputs.begin());
    }
  }

  // Writes to inputs that were 0.
  void write(int64_t row, float* to) const {
    if (feature_.kind == TableFeature::Kind::date) {
      const std::string text = is_missing(column_, row) ? "" : category_of(column_, row);
      require(feature_.write(text, to), ErrorKind::corrupt,
              "[{}] row {}: column '{}' is '{}', expected a date as in the training rows ({})",
              table_.name, row + 1, column_.name, text, to_string(feature_.date.order));
    } else if (column_.categorical) {
      const int32_t code = column_.codes[row];
      if (code >= 0 && places_[code] >= 0) to[places_[code]] = 1;
    } else if (feature_.kind != TableFeature::Kind::number) {
      if (!is_missing(column_, row)) feature_.write(name_of_number(column_.numbers[row]), to);
    } else {
      require(feature_.write(column_.numbers[row], to), ErrorKind::corrupt,
              "[{}] row {}: column '{}' is {}, too far from {} +- {} of the training rows",
              table_.name, row + 1, column_.name, column_.numbers[row], feature_.mean,
              feature_.deviation);
    }
  }

  int64_t width() const { return feature_.width(); }

 private:
  const TableFeature& feature_;
  const Table& table_;
  const Column& column_;
  std::vector<std::ptrdiff_t> places_;  // -1: not among them
};

// True if the first column is pandas' default index: unnamed, 0, 1, 2, ..., restarting at 0 for
// each file.
bool is_row_index(const Table& table) {
  const Column& first = table.columns.front();
  const bool named = first.name != "column 1" && first.name != "Unnamed: 0";
  if (named || first.categorical || table.columns.size() < 2 || table.rows < 2 ||
      table.columns[1].name == "column 2")
    return false;
  double expected = 0;
  for (const double number : first.numbers) {
    if (number != expected && number != 0) return false;
    expected = number + 1;
  }
  return true;
}

std::string some_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 10;
  if (names.size() <= kShown) return join(names, ", ");
  return fmt::format("{}, ... ({} in all)", join({names.begin(), names.begin() + kShown}, ", "),
                     names.size());
}

// Checks columns that the options name.
void check_columns(const Table& table, const std::vector<std::string>& names) {
  for (const std::string& name : names) find_column(table, name);
}

bool is_among(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

}  // namespace

TableEncoder::TableEncoder(const Table& table, const std::vector<int64_t>& rows,
                           const TableOptions& options)
    : target_(options.target.empty() ? table.columns.back().name : options.target) {
  check_columns(table, options.ignore);
  check_columns(table, options.categorical);
  require(!is_among(options.ignore, target_), ErrorKind::invalid_argument,
          "[{}] the target '{}' is among the columns to ignore; name another target", table.name,
          target_);
  learn_target(table, rows, options);
  std::vector<const Column*> columns;
  for (const Column& column : table.columns)
    if (column.name != target_ && !is_among(options.ignore, column.name))
      columns.push_back(&column);
  if (!columns.empty() && columns.front() == &table.columns.front() && is_row_index(table) &&
      !is_among(options.categorical, columns.front()->name)) {
    log(LogLevel::info, "[{}] the first column has no name and numbers the rows: it is left out",
        table.name);
    columns.erase(columns.begin());
  }
  require(!columns.empty(), ErrorKind::invalid_argument,
          "[{}] no column is left to learn '{}' from; shorten data.ignore", table.name, target_);
  features_.resize(columns.size());
  ThreadPool pool(cores_for(std::ssize(columns) * std::ssize(rows) / kValuesAtATime));
  pool.run(static_cast<int64_t>(columns.size()), [&](int64_t i) {
    features_[i] =
        learn_feature(table, *columns[i], rows, is_among(options.categorical, columns[i]->name));
  });
}

void TableEncoder::learn_target(const Table& table, const std::vector<int64_t>& rows,
                                const TableOptions& options) {
  const Column& target = find_column(table, target_);
  require(options.task != Task::values || !target.categorical, ErrorKind::invalid_argument,
          "[{}] the target '{}' has categories, which cannot be predicted as values", table.name,
          target_);
  classes_ = options.task == Task::classes ||
             (options.task == Task::automatic && are_classes(target, rows));
  if (classes_) {
    class_names_ = artel::data::class_names(target, rows);
    constexpr size_t kFewClasses = 20;
    require(!target.categorical || class_names_.size() <= kFewClasses ||
                2 * class_names_.size() <= rows.size(),
            ErrorKind::invalid_argument,
            "[{}] the target '{}' has {} different values in {} rows, too many to learn; set "
            "data.target to another column{}",
            table.name, target_, format_count(std::ssize(class_names_)),
            format_count(std::ssize(rows)),
            options.target.empty() ? ", it is the last one now" : "");
  } else if (options.scale_target) {
    const Spread spread(target.numbers, rows);
    require(std::isfinite(spread.deviation), ErrorKind::unsupported,
            "[{}] the values of the target '{}' are too far apart", table.name, target_);
    offset_ = spread.mean;
    if (spread.deviation > 0) scale_ = spread.deviation;
  } else {
    check_digits(target, rows, table.name);
  }
}

int64_t TableEncoder::width() const {
  int64_t width = 0;
  for (const TableFeature& feature : features_) width += feature.width();
  return width;
}

Tensor TableEncoder::targets_of(const Table& table, const std::vector<int64_t>& rows) const {
  const Column& target = find_column(table, target_);
  const auto count = static_cast<int64_t>(rows.size());
  Tensor targets({count}, classes_ ? DType::i32 : DType::f32);
  std::unordered_map<double, int32_t> known;  // by number, or by code
  std::unordered_map<std::string, int32_t> numbers;
  for (const std::string& name : class_names_)
    numbers.emplace(name, static_cast<int32_t>(numbers.size()));
  for (int64_t i = 0; i < count; ++i) {
    require(!is_missing(target, rows[i]), ErrorKind::corrupt,
            "[{}] row {}: the target '{}' is missing", table.name, rows[i] + 1, target_);
    if (!classes_) {
      require(!target.categorical, ErrorKind::corrupt, "[{}] the target '{}' is not a number",
              table.name, target_);
      const auto value = static_cast<float>((target.numbers[rows[i]] - offset_) / scale_);
      require(std::isfinite(value), ErrorKind::unsupported,
              "[{}] row {}: the target '{}' is {}, too large for 32-bit numbers", table.name,
              rows[i] + 1, target_, target.numbers[rows[i]]);
      targets.values<float>()[i] = value;
      continue;
    }
    const double place_of_value =
        target.categorical ? target.codes[rows[i]] : target.numbers[rows[i]];
    if (const auto seen = known.find(place_of_value); seen != known.end()) {
      targets.values<int32_t>()[i] = seen->second;
      continue;
    }
    const std::string name = category_of(target, rows[i]);
    require(target.categorical || std::abs(target.numbers[rows[i]]) < kLargestClass,
            ErrorKind::unsupported,
            "[{}] row {}: the class {} of the target '{}' has too many digits, expected less than "
            "2^53; put a letter in front of each",
            table.name, rows[i] + 1, name, target_);
    const auto place = numbers.find(name);
    require(place != numbers.end(), ErrorKind::corrupt,
            "[{}] row {}: the class '{}' is not among those of the training rows: {}{}", table.name,
            rows[i] + 1, name, some_of(class_names_),
            with_decimal_point(name)
                ? "; for numbers with decimal commas, set data.decimal_comma = true"
                : "");
    targets.values<int32_t>()[i] = known[place_of_value] = place->second;
  }
  return targets;
}

// Before memory is taken for the inputs.
void TableEncoder::check_width(const std::string& table, size_t rows) const {
  const auto bytes = static_cast<double>(rows * sizeof(float)) * static_cast<double>(width());
  const auto plain = static_cast<double>(rows * features_.size() * sizeof(float));
  if (bytes <= std::max(kMostBytes, kMostTimesLarger * plain)) return;
  const auto widest = std::max_element(
      features_.begin(), features_.end(),
      [](const TableFeature& a, const TableFeature& b) { return a.width() < b.width(); });
  fail(
      ErrorKind::unsupported,
      "[{}] with one input for each name, {} rows take {:.1f} GB, most of all for column '{}' with "
      "{} inputs; try data.ignore = [\"{}\"], or make its values fewer",
      table, rows, bytes / 1e9, widest->column, widest->width(), widest->column);
}

void TableEncoder::encode_pieces(
    const Table& table, const std::vector<int64_t>& rows,
    const std::function<void(int64_t, std::span<const float>)>& use) const {
  check_width(table.name, rows.size());
  std::vector<ColumnWriter> writers;
  for (const TableFeature& feature : features_) writers.emplace_back(feature, table);
  const int64_t width = this->width(), count = std::ssize(rows);
  const int64_t at_a_time = std::max<int64_t>(1, kValuesAtATime / std::max<int64_t>(1, width));
  const int64_t pieces = (count + at_a_time - 1) / at_a_time;
  ThreadPool pool(cores_for(pieces));
  pool.run(pieces, [&](int64_t piece) {
    const int64_t first = piece * at_a_time, last = std::min(count, first + at_a_time);
    std::vector<float> inputs(static_cast<size_t>((last - first) * width), 0.0f);
    float* to = inputs.data();
    for (int64_t i = first; i < last; ++i)
      for (const ColumnWriter& writer : writers) {
        writer.write(rows[i], to);
        to += writer.width();
      }
    use(first, inputs);
  });
}

TableEncoder::Tensors TableEncoder::encode_rows(const Table& table,
                                                const std::vector<int64_t>& rows) const {
  check_width(table.name, rows.size());
  Tensor inputs({std::ssize(rows), width()});
  encode_pieces(table, rows, [&](int64_t first, std::span<const float> piece) {
    std::copy(piece.begin(), piece.end(), inputs.values<float>().begin() + first * width());
  });
  return {std::move(inputs), targets_of(table, rows)};
}

DatasetPtr TableEncoder::dataset(const Tensors& rows) const {
  return tensor_dataset(rows.inputs, rows.targets, static_cast<int64_t>(class_names_.size()),
                        class_names_, {}, std::make_shared<const TableEncoder>(*this));
}

DatasetPtr TableEncoder::encode(const Table& table, const std::vector<int64_t>& rows) const {
  return dataset(encode_rows(table, rows));
}

TableEncoder::Rows::Rows(const TableEncoder& encoder, const std::vector<std::string>& columns,
                         const std::string& file)
    : encoder_(encoder), file_(file) {
  for (const TableFeature& feature : encoder.features()) {
    const auto place = std::find(columns.begin(), columns.end(), feature.column);
    require(place != columns.end(), ErrorKind::not_found,
            "[{}] has no column '{}', which the network was trained with{}", file, feature.column,
            did_you_mean(feature.column, columns));
    places_.push_back(static_cast<size_t>(place - columns.begin()));
  }
}

void TableEncoder::Rows::encode(std::span<const std::string_view> fields, int64_t line, float* to,
                                UnseenNames& unseen) const {
  for (size_t i = 0; i < places_.size(); ++i) {
    const TableFeature& feature = encoder_.features_[i];
    const std::string_view field = fields[places_[i]];
    const int64_t width = feature.width();
    std::fill(to, to + width, 0.0f);
    if (feature.kind == TableFeature::Kind::date) {
      require(
          feature.write(is_missing(field) ? std::string_view() : field, to), ErrorKind::corrupt,
          "[{}] line {}: column '{}' is '{}', expected a date ({}), or nothing if it is missing",
          file_, line, feature.column, field.substr(0, 40), to_string(feature.date.order));
    } else if (feature.kind != TableFeature::Kind::number) {
      const auto number = feature.of_numbers ? parse_number(field) : std::nullopt;
      const bool known = number && !std::isnan(*number)
                             ? feature.write(name_of_number(*number), to)
                             : is_missing(field) || feature.write(field, to);
      if (!known) unseen.add(feature.column, field);
    } else {
      const std::optional<double> number =
          is_missing(field) ? std::numeric_limits<double>::quiet_NaN() : parse_number(field);
      require(number.has_value(), ErrorKind::corrupt,
              "[{}] line {}: column '{}' is '{}', expected a number, or nothing if it is missing",
              file_, line, feature.column, field.substr(0, 40));
      require(feature.write(*number, to), ErrorKind::corrupt,
              "[{}] line {}: column '{}' is {}, too far from {} +- {} of the training rows", file_,
              line, feature.column, *number, feature.mean, feature.deviation);
    }
    to += width;
  }
}

}  // namespace artel::data
