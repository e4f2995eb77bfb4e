#include "artel/data/csv.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <optional>

#include "artel/base/text.h"

namespace artel::data {
namespace {

constexpr size_t kMaxColumns = 1 << 16;

bool is_missing(std::string_view field) {
  for (const std::string_view word : {"", "NA", "NaN", "nan", "null", "?"})
    if (field == word) return true;
  return false;
}

std::optional<float> to_number(std::string_view field) {
  if (field.starts_with('+')) field.remove_prefix(1);
  float value = 0;
  const char* end = field.data() + field.size();
  const auto [stop, error] = std::from_chars(field.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Cuts text into records; a quoted field may hold separators, quotes and line ends.
class RecordReader {
 public:
  RecordReader(const Bytes& bytes, char separator)
      : name_(bytes.name), text_(bytes.text()), separator_(separator) {}

  // The line on which the last record started, from 1.
  int64_t line() const { return record_line_; }

  // False at the end. Empty lines are skipped.
  bool next(std::vector<std::string>& fields) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
      line_ += text_[at_] == '\n';
      ++at_;
    }
    if (at_ >= text_.size()) return false;
    record_line_ = line_;
    fields.clear();
    do {
      require(fields.size() < kMaxColumns, ErrorKind::corrupt, "[{}] line {}: more than {} fields",
              name_, record_line_, kMaxColumns);
      fields.push_back(next_field());
    } while (at_ < text_.size() && text_[at_] == separator_ && ++at_);
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    require(at_ >= text_.size() || text_[at_] == '\n', ErrorKind::corrupt,
            "[{}] line {}: text after the closing quote of field {}", name_, line_, fields.size());
    return true;
  }

 private:
  std::string next_field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_field();
    size_t end = at_;
    while (end < text_.size() && text_[end] != separator_ && text_[end] != '\n') ++end;
    const std::string_view field = text_.substr(at_, end - at_);
    at_ = end;
    return std::string(trim(field));
  }

  std::string quoted_field() {
    std::string field;
    const int64_t opened = line_;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') {
          ++at_;
          return field;
        }
        ++at_;
      }
      line_ += c == '\n';
      field += c;
    }
    fail(ErrorKind::corrupt, "[{}] line {}: a quote is never closed", name_, opened);
  }

  std::string name_;
  std::string_view text_;
  char separator_;
  size_t at_ = 0;
  int64_t line_ = 1, record_line_ = 1;
};

char guess_separator(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  char best = ',';
  std::ptrdiff_t most = 0;
  for (const char candidate : {',', ';', '\t'}) {
    const auto count = std::count(line.begin(), line.end(), candidate);
    if (count > most) {
      most = count;
      best = candidate;
    }
  }
  return best;
}

bool looks_like_header(const std::vector<std::string>& fields) {
  return std::none_of(fields.begin(), fields.end(), [](const std::string& field) {
    return to_number(field) || is_missing(field);
  });
}

Column make_column(std::string name, const std::vector<std::string>& fields) {
  Column column{std::move(name)};
  for (const std::string& field : fields) {
    const std::optional<float> number = to_number(field);
    if (!number && !is_missing(field)) {
      column.categorical = true;
      break;
    }
    column.numbers.push_back(number.value_or(std::numeric_limits<float>::quiet_NaN()));
  }
  if (!column.categorical) return column;
  column.numbers.clear();
  std::map<std::string, int32_t> codes;
  for (const std::string& field : fields)
    if (!is_missing(field)) codes[field] = 0;
  for (auto& [category, code] : codes) {
    code = static_cast<int32_t>(column.categories.size());
    column.categories.push_back(category);
  }
  for (const std::string& field : fields)
    column.codes.push_back(is_missing(field) ? -1 : codes[field]);
  return column;
}

const Column& find_column(const Table& table, const std::string& name) {
  std::vector<std::string> names;
  for (const Column& column : table.columns) {
    if (column.name == name) return column;
    names.push_back(column.name);
  }
  fail(ErrorKind::not_found, "[{}] has no column '{}'{}", table.name, name,
       did_you_mean(name, names));
}

// A value of either kind of column as the name of a class; "" if missing.
std::string class_name(const Column& column, int64_t row) {
  if (column.categorical) return column.codes[row] < 0 ? "" : column.categories[column.codes[row]];
  return std::isnan(column.numbers[row]) ? "" : fmt::format("{}", column.numbers[row]);
}

bool are_classes(const Column& column, const std::vector<int64_t>& rows) {
  if (column.categorical) return true;
  constexpr size_t kMostKinds = 20;
  std::map<float, int> kinds;
  for (const int64_t row : rows) {
    const float value = column.numbers[row];
    if (std::isnan(value)) continue;
    ++kinds[value];
    if (value != std::floor(value) || kinds.size() > kMostKinds) return false;
  }
  return true;
}

// Sorted as numbers if the column is numeric, so that class "10" comes after "9".
std::vector<std::string> class_names(const Column& column, const std::vector<int64_t>& rows) {
  std::vector<std::string> names;
  if (column.categorical) {
    for (const int64_t row : rows)
      if (column.codes[row] >= 0) names.push_back(class_name(column, row));
    std::sort(names.begin(), names.end());
  } else {
    std::map<float, std::string> sorted;
    for (const int64_t row : rows)
      if (!std::isnan(column.numbers[row])) sorted[column.numbers[row]] = class_name(column, row);
    for (const auto& [number, name] : sorted) names.push_back(name);
  }
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<int64_t> all_rows(const Table& table) {
  std::vector<int64_t> rows(table.rows);
  for (int64_t i = 0; i < table.rows; ++i) rows[i] = i;
  return rows;
}

}  // namespace

Table parse_csv(const Bytes& bytes, const CsvOptions& options) {
  RecordReader reader(bytes, options.separator ? options.separator : guess_separator(bytes.text()));
  std::vector<std::string> fields, names;
  require(reader.next(fields), ErrorKind::corrupt, "[{}] line 1: the file is empty", bytes.name);
  const bool header = options.header == CsvHeader::present ||
                      (options.header == CsvHeader::automatic && looks_like_header(fields));
  for (size_t i = 0; i < fields.size(); ++i)
    names.push_back(header ? fields[i] : fmt::format("column {}", i + 1));
  std::vector<std::vector<std::string>> columns(names.size());
  for (bool more = !header || reader.next(fields); more; more = reader.next(fields)) {
    require(fields.size() == names.size(), ErrorKind::corrupt,
            "[{}] line {}: got {} fields, expected {}", bytes.name, reader.line(), fields.size(),
            names.size());
    for (size_t i = 0; i < fields.size(); ++i) columns[i].push_back(std::move(fields[i]));
  }
  Table table{bytes.name, static_cast<int64_t>(columns[0].size()), {}};
  for (size_t i = 0; i < names.size(); ++i)
    table.columns.push_back(make_column(names[i], columns[i]));
  return table;
}

TableEncoder::TableEncoder(const Table& table, const std::vector<int64_t>& rows,
                           const TableOptions& options)
    : target_(options.target.empty() ? table.columns.back().name : options.target) {
  const Column& target = find_column(table, target_);
  require(options.task != Task::values || !target.categorical, ErrorKind::invalid_argument,
          "[{}] the target '{}' has categories, which cannot be predicted as values", table.name,
          target_);
  classes_ = options.task == Task::classes ||
             (options.task == Task::automatic && are_classes(target, rows));
  if (classes_) class_names_ = class_names(target, rows);
  for (const Column& column : table.columns) {
    if (&column == &target) continue;
    Feature feature{column.name, column.categorical, 0, 1, column.categories};
    double sum = 0, squares = 0;
    int64_t count = 0;
    for (const int64_t row : rows) {
      if (column.categorical || std::isnan(column.numbers[row])) continue;
      sum += column.numbers[row];
      squares += static_cast<double>(column.numbers[row]) * column.numbers[row];
      ++count;
    }
    if (count > 0) {
      const double mean = sum / static_cast<double>(count);
      const double variance = squares / static_cast<double>(count) - mean * mean;
      feature.mean = static_cast<float>(mean);
      // A constant column must not be divided by rounding errors.
      if (variance > 1e-12 * (1 + mean * mean))
        feature.deviation = static_cast<float>(std::sqrt(variance));
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
      const float number = column.numbers[rows[i]];
      *at = std::isnan(number) ? 0 : (number - feature.mean) / feature.deviation;
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
    const std::string name = class_name(target, rows[i]);
    require(!name.empty(), ErrorKind::corrupt, "[{}] row {}: the target '{}' is missing",
            table.name, rows[i] + 1, target_);
    if (!classes_) {
      require(!target.categorical, ErrorKind::corrupt, "[{}] the target '{}' is not a number",
              table.name, target_);
      targets.values<float>()[i] = target.numbers[rows[i]];
      continue;
    }
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
