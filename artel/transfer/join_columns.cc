#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "artel/base/bytes.h"
#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/data/tables/csv_reader.h"
#include "artel/data/tables/number.h"
#include "artel/transfer/features.h"

namespace artel::transfer {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostWords = 64;  // distinct words per column

struct Table {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
  std::string where;
};

Table read_table(const fs::path& path) {
  data::CsvReader reader(map_file(path));
  Table table = {.columns = reader.columns(), .rows = {}, .where = path.string()};
  std::vector<std::string_view> fields;
  while (reader.next(fields)) table.rows.emplace_back(fields.begin(), fields.end());
  return table;
}

std::optional<float> number_in(const std::string& field) {
  char* end = nullptr;
  const float value = std::strtof(field.c_str(), &end);
  if (field.empty() || end != field.c_str() + field.size()) return {};
  return value;
}

// The numbers of one column: its values, or a one-hot encoding of its words. Missing values become
// the mean or 0.
struct Column {
  std::vector<std::string> names;
  std::vector<std::vector<float>> values;  // by row
};

Column encode(const Table& table, size_t column) {
  const auto missing = [](const std::string& field) { return data::is_missing(field); };
  std::set<std::string> words;
  double sum = 0;
  int64_t numbers = 0, others = 0;
  for (const auto& row : table.rows) {
    if (missing(row[column])) continue;
    words.insert(row[column]);
    if (const auto value = number_in(row[column])) {
      sum += *value;
      ++numbers;
    } else {
      ++others;
    }
  }
  Column result;
  result.values.resize(table.rows.size());
  if (others == 0) {
    const auto mean = static_cast<float>(numbers > 0 ? sum / static_cast<double>(numbers) : 0);
    result.names = {table.columns[column]};
    for (size_t i = 0; i < table.rows.size(); ++i)
      result.values[i] = {number_in(table.rows[i][column]).value_or(mean)};
    return result;
  }
  require(words.size() <= kMostWords, ErrorKind::invalid_argument,
          "[{}] column '{}' has {} different words, expected numbers or at most {} words; leave it "
          "out of the table, or name it with --on if it names the samples",
          table.where, table.columns[column], words.size(), kMostWords);
  for (const std::string& word : words)
    result.names.push_back(fmt::format("{}={}", table.columns[column], word));
  for (size_t i = 0; i < table.rows.size(); ++i)
    for (const std::string& word : words)
      result.values[i].push_back(table.rows[i][column] == word ? 1.0f : 0.0f);
  return result;
}

// Finds the table rows of the samples by the longest known suffix of a picture's path.
class RowsByName {
 public:
  RowsByName(const Table& table, size_t column) : table_(table) {
    for (size_t i = 0; i < table.rows.size(); ++i)
      require(rows_.emplace(table.rows[i][column], i).second, ErrorKind::invalid_argument,
              "[{}] '{}' occurs twice in column '{}', expected each sample once", table.where,
              table.rows[i][column], table.columns[column]);
  }
  std::optional<size_t> find(const std::string& name) const {
    const fs::path path = name;
    for (const std::string& key : {name, (path.parent_path().filename() / path.filename()).string(),
                                   path.filename().string(), path.stem().string()})
      if (const auto found = rows_.find(key); found != rows_.end()) return found->second;
    return {};
  }

 private:
  const Table& table_;
  std::map<std::string, size_t> rows_;
};

std::vector<size_t> rows_of(const Features& features, const Table& table, const std::string& on,
                            std::optional<size_t> column) {
  std::vector<size_t> rows;
  const auto samples = static_cast<size_t>(features.train.size() + features.test.size());
  if (!column) {
    require(table.rows.size() == samples, ErrorKind::invalid_argument,
            "[{}] has {} rows for {} samples; give the column that names the samples with --on",
            table.where, table.rows.size(), samples);
    for (size_t i = 0; i < samples; ++i) rows.push_back(i);
    return rows;
  }
  const RowsByName by_name(table, *column);
  std::vector<std::string> lacking;
  for (const FeaturePart* part : {&features.train, &features.test}) {
    require(part->size() == 0 || !part->names.empty(), ErrorKind::invalid_argument,
            "--on {}: the samples have no names, expected a folder of pictures; leave --on out to "
            "join rows in their order",
            on);
    for (const std::string& name : part->names) {
      const std::optional<size_t> row = by_name.find(name);
      if (row)
        rows.push_back(*row);
      else
        lacking.push_back(name);
    }
  }
  constexpr size_t kNamed = 3;
  const size_t count = lacking.size();
  if (count > kNamed) lacking.resize(kNamed);
  require(count == 0, ErrorKind::not_found, "[{}] column '{}' lacks {} of {} samples: {}{}",
          table.where, on, count, samples, join(lacking, ", "), count > kNamed ? ", ..." : "");
  return rows;
}

}  // namespace

void join_columns(Features& features, const fs::path& path, const std::string& on) {
  const Table table = read_table(path);
  std::optional<size_t> key;
  if (!on.empty()) {
    const auto found = std::ranges::find(table.columns, on);
    require(found != table.columns.end(), ErrorKind::not_found,
            "[{}] has no column '{}'{}; its columns are {}", table.where, on,
            did_you_mean(on, table.columns), join(table.columns, ", "));
    key = static_cast<size_t>(found - table.columns.begin());
  }
  const std::vector<size_t> rows = rows_of(features, table, on, key);
  std::vector<Column> columns;
  std::vector<std::string> names;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (i == key) continue;
    columns.push_back(encode(table, i));
    names.insert(names.end(), columns.back().names.begin(), columns.back().names.end());
  }
  require(!names.empty(), ErrorKind::invalid_argument, "[{}] has no columns to join", table.where);
  const auto width = static_cast<int64_t>(names.size());
  size_t at = 0;
  for (FeaturePart* part : {&features.train, &features.test}) {
    if (part->size() == 0) continue;
    Tensor joined({part->size(), width});
    float* to = joined.values<float>().data();
    for (int64_t i = 0; i < part->size(); ++i)
      for (const Column& column : columns)
        to = std::ranges::copy(column.values[rows[at + static_cast<size_t>(i)]], to).out;
    at += static_cast<size_t>(part->size());
    part->layers.push_back(joined);
  }
  features.columns = std::move(names);
}

}  // namespace artel::transfer
