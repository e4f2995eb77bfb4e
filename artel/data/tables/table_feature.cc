#include "artel/data/tables/table_feature.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <set>
#include <unordered_set>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/data/spread.h"

namespace artel::data {
namespace {

bool has_missing(const Column& column, const std::vector<int64_t>& rows) {
  return std::ranges::any_of(rows, [&](int64_t row) { return is_missing(column, row); });
}

// Names of the categories in these rows, each once.
std::set<std::string> names_in(const Column& column, const std::vector<int64_t>& rows,
                               size_t most) {
  std::set<std::string> names;
  std::unordered_set<double> seen;  // numbers or codes: few of them, in many rows
  for (const int64_t row : rows) {
    if (is_missing(column, row)) continue;
    if (seen.insert(column.categorical ? column.codes[row] : column.numbers[row]).second)
      names.insert(category_of(column, row));
    if (names.size() > most) break;
  }
  return names;
}

void learn_number(const Table& table, const Column& column, const std::vector<int64_t>& rows,
                  TableFeature& feature) {
  const Spread spread(column.numbers, rows);
  require(std::isfinite(spread.deviation), ErrorKind::unsupported,
          "[{}] the numbers of column '{}' are too far apart", table.name, column.name);
  feature.mean = spread.mean;
  if (spread.deviation > 0) feature.deviation = spread.deviation;
  feature.flags_missing = has_missing(column, rows);
}

// Returns false if some value is not a date.
bool learn_date(const Column& column, const std::vector<int64_t>& rows, TableFeature& feature) {
  const std::set<std::string> names = names_in(column, rows, column.categories.size());
  const auto format = date_format_of({names.begin(), names.end()});
  if (!format) return false;
  std::vector<double> seconds, years;
  std::vector<int64_t> present;
  for (const int64_t row : rows) {
    if (is_missing(column, row)) continue;
    present.push_back(static_cast<int64_t>(present.size()));
    seconds.push_back(*parse_date(column.categories[column.codes[row]], *format));
    years.push_back(calendar_time(seconds.back()).year);
  }
  const Spread elapsed(seconds, present), year(years, present);
  feature.kind = TableFeature::Kind::date;
  feature.date = *format;
  feature.mean = elapsed.mean;
  if (elapsed.deviation > 0) feature.deviation = elapsed.deviation;
  feature.year_mean = year.mean;
  if (year.deviation > 0) feature.year_deviation = year.deviation;
  feature.flags_missing = has_missing(column, rows);
  return true;
}

// Encodes a position within a period as a point on the unit circle.
void write_on_circle(double share, float* to) {
  to[0] = static_cast<float>(std::sin(2 * std::numbers::pi * share));
  to[1] = static_cast<float>(std::cos(2 * std::numbers::pi * share));
}

}  // namespace

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

std::string name_of_number(double number) {
  return fmt::format("{}", number + 0.0);  // also of -0
}

std::string category_of(const Column& column, int64_t row) {
  return column.categorical ? column.categories[column.codes[row]]
                            : name_of_number(column.numbers[row]);
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

int64_t TableFeature::width() const {
  const int64_t flag = flags_missing ? 1 : 0;
  switch (kind) {
    case Kind::number:
      return 1 + flag;
    case Kind::names:
      return static_cast<int64_t>(categories.size());
    case Kind::hashed:
      return kBuckets;
    case Kind::date:
      return 6 + (date.has_time ? 2 : 0) + flag;
  }
  return 0;
}

bool TableFeature::write(double number, float* to) const {
  if (std::isnan(number)) {
    if (flags_missing) to[1] = 1;
    return true;
  }
  *to = static_cast<float>((number - mean) / deviation);
  return std::isfinite(*to);
}

bool TableFeature::write_date(std::string_view text, float* to) const {
  if (text.empty()) {
    if (flags_missing) to[width() - 1] = 1;
    return true;
  }
  const std::optional<double> seconds = parse_date(text, date);
  if (!seconds) return false;
  const CalendarTime time = calendar_time(*seconds);
  to[0] = static_cast<float>((*seconds - mean) / deviation);
  to[1] = static_cast<float>((time.year - year_mean) / year_deviation);
  write_on_circle((time.month - 1) / 12.0, to + 2);
  write_on_circle(time.weekday / 7.0, to + 4);
  if (date.has_time) write_on_circle(time.hours / 24, to + 6);
  return std::isfinite(to[0]) && std::isfinite(to[1]);
}

bool TableFeature::write(std::string_view name, float* to) const {
  if (kind == Kind::date) return write_date(name, to);
  if (name.empty()) return true;
  if (kind == Kind::hashed) {
    to[hash_name(name) % kBuckets] = 1;
    return true;
  }
  const auto place = std::lower_bound(categories.begin(), categories.end(), name);
  const bool known = place != categories.end() && *place == name;
  if (known) to[place - categories.begin()] = 1;
  return known;
}

TableFeature learn_feature(const Table& table, const Column& column,
                           const std::vector<int64_t>& rows, bool as_names) {
  using Kind = TableFeature::Kind;
  TableFeature feature{.column = column.name};
  if (!column.categorical && !as_names) {
    learn_number(table, column, rows, feature);
    return feature;
  }
  if (!as_names && learn_date(column, rows, feature)) return feature;
  feature.of_numbers = !column.categorical;
  const std::set<std::string> names = names_in(column, rows, TableFeature::kMostCategories);
  feature.kind = names.size() > TableFeature::kMostCategories ? Kind::hashed : Kind::names;
  if (feature.kind == Kind::names) feature.categories.assign(names.begin(), names.end());
  return feature;
}

}  // namespace artel::data
