#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/data/csv.h"
#include "artel/data/number.h"

namespace artel::data {
namespace {

constexpr double kLargestClass = 0x1p53;  // whole numbers beyond are not told apart

// One unusual word for a missing value must not make a measured quantity a set of names in silence.
void warn_of_mixed_columns(const Table& table) {
  for (const Column& column : table.columns) {
    int64_t numbers = 0, words = 0;
    const std::string* word = nullptr;
    for (const int32_t code : column.codes) {
      if (code < 0) continue;
      const bool number = parse_number(column.categories[code]).has_value();
      ++(number ? numbers : words);
      if (!number && !word) word = &column.categories[code];
    }
    if (word && numbers > words)
      log(LogLevel::warning,
          "[{}] column '{}' is taken as categories because of '{}', although {} of its {} fields "
          "are numbers; leave fields empty where a number is missing",
          table.name, column.name, *word, numbers, numbers + words);
  }
}

// Mean and deviation of some numbers, in terms of their distances from the first: what they have in
// common costs no digits. Numbers that differ by rounding errors only have a deviation of 0.
struct Spread {
  static constexpr double kNoise = 0x1p-44;
  double mean = 0, deviation = 0;

  Spread(const std::vector<double>& numbers, const std::vector<int64_t>& rows) {
    std::vector<double> distances;
    double first = 0, largest = 0;
    for (const int64_t row : rows) {
      if (std::isnan(numbers[row])) continue;
      if (distances.empty()) first = numbers[row];
      distances.push_back(numbers[row] - first);
      largest = std::max(largest, std::abs(distances.back()));
    }
    mean = first;
    if (largest <= kNoise * std::abs(first)) return;
    const auto count = static_cast<double>(distances.size());
    double sum = 0, squares = 0;
    for (const double distance : distances) sum += distance / largest;
    for (const double distance : distances) {
      const double difference = distance / largest - sum / count;
      squares += difference * difference;
    }
    mean = first + largest * (sum / count);
    deviation = largest * std::sqrt(squares / count);
  }
};

const Column& find_column(const Table& table, const std::string& name) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) {
    if (column.name == name) return column;
    names.push_back(column.name);
  }
  fail(ErrorKind::not_found, "[{}] has no column '{}'{}", table.name, name,
       did_you_mean(name, names));
}

bool is_missing(const Column& column, int64_t row) {
  return column.categorical ? column.codes[row] < 0 : std::isnan(column.numbers[row]);
}

// A present value of either kind of column as the name of a class.
std::string class_name(const Column& column, int64_t row) {
  return column.categorical ? column.categories[column.codes[row]]
                            : fmt::format("{}", column.numbers[row] + 0.0);  // of -0, too
}

bool are_classes(const Column& column, const std::vector<int64_t>& rows) {
  if (column.categorical) return true;
  constexpr size_t kMostKinds = 20;
  std::set<double> kinds;
  for (const int64_t row : rows) {
    const double value = column.numbers[row];
    if (std::isnan(value)) continue;
    kinds.insert(value);
    if (value != std::floor(value) || kinds.size() > kMostKinds) return false;
  }
  return true;
}

// Sorted as numbers if the column is numeric, so that class "10" comes after "9".
std::vector<std::string> class_names(const Column& column, const std::vector<int64_t>& rows) {
  std::map<double, std::string> sorted;  // by number, or by the place among all categories
  for (const int64_t row : rows)
    if (!is_missing(column, row))
      sorted[column.categorical ? column.codes[row] : column.numbers[row]] =
          class_name(column, row);
  std::vector<std::string> names;
  for (const auto& [number, name] : sorted) names.push_back(name);
  return names;
}

// What is predicted is rounded to f32; that must not be what the values differ by.
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
          "by up to {:.3g}; try to subtract {:.6g} from the column",
          where, target.name, spread.mean, spread.deviation, worst, spread.mean);
}

std::vector<int64_t> all_rows(const Table& table) {
  std::vector<int64_t> rows(table.rows);
  for (int64_t i = 0; i < table.rows; ++i) rows[i] = i;
  return rows;
}

}  // namespace

TableEncoder::TableEncoder(const Table& table, const std::vector<int64_t>& rows,
                           const TableOptions& options)
    : target_(options.target.empty() ? table.columns.back().name : options.target) {
  const Column& target = find_column(table, target_);
  require(options.task != Task::values || !target.categorical, ErrorKind::invalid_argument,
          "[{}] the target '{}' has categories, which cannot be predicted as values", table.name,
          target_);
  classes_ = options.task == Task::classes ||
             (options.task == Task::automatic && are_classes(target, rows));
  if (classes_)
    class_names_ = class_names(target, rows);
  else
    check_digits(target, rows, table.name);
  for (const Column& column : table.columns) {
    if (&column == &target) continue;
    Feature feature{column.name, column.categorical, 0, 1, column.categories};
    if (!column.categorical) {
      const Spread spread(column.numbers, rows);
      require(std::isfinite(spread.deviation), ErrorKind::unsupported,
              "[{}] the numbers of column '{}' are too far apart", table.name, column.name);
      feature.mean = spread.mean;
      if (spread.deviation > 0) feature.deviation = spread.deviation;
    }
    features_.push_back(std::move(feature));
  }
}

int64_t TableEncoder::width() const {
  int64_t width = 0;
  for (const Feature& feature : features_)
    width += feature.categorical ? static_cast<int64_t>(feature.categories.size()) : 1;
  return width;
}

void TableEncoder::write_feature(const Feature& feature, const Table& table,
                                 const std::vector<int64_t>& rows, int64_t first,
                                 Tensor& inputs) const {
  const Column& column = find_column(table, feature.column);
  require(column.categorical == feature.categorical, ErrorKind::corrupt,
          "[{}] column '{}' is {} here, but was not in the training rows", table.name, column.name,
          column.categorical ? "categorical" : "numeric");
  const int64_t stride = inputs.shape()[1];
  float* values = inputs.values<float>().data() + first;
  for (size_t i = 0; i < rows.size(); ++i) {
    float* at = values + static_cast<int64_t>(i) * stride;
    if (!feature.categorical) {
      const double number = column.numbers[rows[i]];
      if (std::isnan(number)) continue;
      *at = static_cast<float>((number - feature.mean) / feature.deviation);
      require(std::isfinite(*at), ErrorKind::corrupt,
              "[{}] row {}: column '{}' is {}, too far from {} +- {} of the training rows",
              table.name, rows[i] + 1, column.name, number, feature.mean, feature.deviation);
    } else if (column.codes[rows[i]] >= 0) {
      const std::string& category = column.categories[column.codes[rows[i]]];
      const auto place =
          std::lower_bound(feature.categories.begin(), feature.categories.end(), category);
      if (place != feature.categories.end() && *place == category)
        at[place - feature.categories.begin()] = 1;
    }
  }
}

DatasetPtr TableEncoder::encode(const Table& table, const std::vector<int64_t>& rows) const {
  const auto count = static_cast<int64_t>(rows.size());
  Tensor inputs({count, width()});
  int64_t first = 0;
  for (const Feature& feature : features_) {
    write_feature(feature, table, rows, first, inputs);
    first += feature.categorical ? static_cast<int64_t>(feature.categories.size()) : 1;
  }
  const Column& target = find_column(table, target_);
  Tensor targets({count}, classes_ ? DType::i32 : DType::f32);
  for (int64_t i = 0; i < count; ++i) {
    require(!is_missing(target, rows[i]), ErrorKind::corrupt,
            "[{}] row {}: the target '{}' is missing", table.name, rows[i] + 1, target_);
    if (!classes_) {
      require(!target.categorical, ErrorKind::corrupt, "[{}] the target '{}' is not a number",
              table.name, target_);
      const auto value = static_cast<float>(target.numbers[rows[i]]);
      require(std::isfinite(value), ErrorKind::unsupported,
              "[{}] row {}: the target '{}' is {}, too large for 32-bit numbers", table.name,
              rows[i] + 1, target_, target.numbers[rows[i]]);
      targets.values<float>()[i] = value;
      continue;
    }
    const std::string name = class_name(target, rows[i]);
    require(target.categorical || std::abs(target.numbers[rows[i]]) < kLargestClass,
            ErrorKind::unsupported,
            "[{}] row {}: the class {} of the target '{}' has too many digits, expected less than "
            "2^53; put a letter in front of each",
            table.name, rows[i] + 1, name, target_);
    const auto place = std::find(class_names_.begin(), class_names_.end(), name);
    require(place != class_names_.end(), ErrorKind::corrupt,
            "[{}] row {}: the class '{}' is not among those of the training rows: {}", table.name,
            rows[i] + 1, name, join(class_names_, ", "));
    targets.values<int32_t>()[i] = static_cast<int32_t>(place - class_names_.begin());
  }
  return tensor_dataset(inputs, targets, static_cast<int64_t>(class_names_.size()), class_names_);
}

Split csv(const std::filesystem::path& train, const std::filesystem::path& test,
          double test_fraction, uint64_t seed, const TableOptions& options) {
  const Table table = parse_csv(map_file(train));
  warn_of_mixed_columns(table);
  if (!test.empty()) {
    const std::vector<int64_t> rows = all_rows(table);
    const TableEncoder encoder(table, rows, options);
    const Table other = parse_csv(map_file(test));
    return {encoder.encode(table, rows), encoder.encode(other, all_rows(other))};
  }
  const auto [train_rows, test_rows] = split_samples(table.rows, test_fraction, seed);
  const TableEncoder encoder(table, train_rows, options);
  return {encoder.encode(table, train_rows), encoder.encode(table, test_rows)};
}

}  // namespace artel::data
