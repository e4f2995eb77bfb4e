#include "artel/data/tables/table_report.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "artel/base/plural.h"
#include "artel/data/spread.h"
#include "artel/data/tables/dates.h"
#include "artel/data/tables/number.h"

namespace artel::data {
namespace {

bool is_one_of(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// True if most of the names satisfy a condition.
bool most(const std::vector<std::string>& names, bool (*condition)(std::string_view)) {
  const auto count = std::count_if(names.begin(), names.end(), condition);
  return !names.empty() && 2 * count > static_cast<std::ptrdiff_t>(names.size());
}

bool has_decimal_comma(std::string_view text) { return with_decimal_point(text).has_value(); }

std::string warn_of_names(const Column& column, int64_t present) {
  const std::vector<std::string>& names = column.categories;
  const auto kinds = static_cast<int64_t>(names.size());
  if (most(names, has_decimal_comma))
    return "numbers with decimal commas count as names; set data.decimal_comma = true";
  constexpr int64_t kFew = 20;
  if (kinds == present && present >= kFew)
    return fmt::format("each value occurs once, like an id; try data.ignore = [\"{}\"]",
                       column.name);
  if (kinds >= kFew && 3 * kinds > present)
    return fmt::format(
        "{} names in {} rows, too many to learn each; for an id try data.ignore = [\"{}\"]",
        format_count(kinds), format_count(present), column.name);
  if (names.size() > TableFeature::kMostCategories)
    return fmt::format("{} names share {} inputs", format_count(kinds), TableFeature::kBuckets);
  if (kinds == 1 && present == static_cast<int64_t>(column.codes.size()))
    return "constant: there is nothing to learn from it";
  return "";
}

std::string warn_of_numbers(const Column& column, const std::vector<double>& present,
                            const Spread& spread) {
  if (present.empty()) return "empty: there is nothing to learn from it";
  if (spread.deviation == 0) return "constant: there is nothing to learn from it";
  double farthest = present[0];
  for (const double value : present)
    if (std::abs(value - spread.mean) > std::abs(farthest - spread.mean)) farthest = value;
  const auto count = static_cast<double>(present.size());
  constexpr double kFew = 10;
  // The distance of one value among equal ones is sqrt(n - 1) deviations.
  if (count >= kFew && std::abs(farthest - spread.mean) > 0.9 * std::sqrt(count) * spread.deviation)
    return fmt::format("one value, {:g}, is far from all others", farthest);
  const std::set<double> kinds(present.begin(), present.end());
  const bool whole = std::all_of(present.begin(), present.end(),
                                 [](double value) { return value == std::floor(value); });
  const bool ordered = std::is_sorted(present.begin(), present.end());
  if (whole && ordered && kinds.size() == present.size() && count >= kFew)
    return fmt::format("each value occurs once, in order, like an id; try data.ignore = [\"{}\"]",
                       column.name);
  return "";
}

std::string list_of(const std::vector<std::string>& names) {
  constexpr size_t kShown = 4, kLongest = 20;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i)
    shown.push_back(names[i].size() > kLongest ? names[i].substr(0, kLongest) + "..." : names[i]);
  return join(shown, ", ") + (names.size() > kShown ? ", ..." : "");
}

std::string warn_of_target(const Column& column, int64_t missing) {
  if (column.categorical && most(column.categories, has_decimal_comma))
    return "numbers with decimal commas count as classes; set data.decimal_comma = true";
  return missing > 0 ? counted(missing, "row") + " left out" : "";
}

ColumnReport describe(const Column& column) {
  ColumnReport report{.name = column.name};
  if (column.categorical) {
    report.missing = std::count(column.codes.begin(), column.codes.end(), -1);
    const auto present = static_cast<int64_t>(column.codes.size()) - report.missing;
    report.content = list_of(column.categories);
    if (const auto format = date_format_of(column.categories)) {
      report.use = format->has_time ? "time" : "date";
      if (format->order != DateFormat::Order::year_month_day)
        report.warning = fmt::format("read as {}", to_string(format->order));
      return report;
    }
    report.use = counted(static_cast<int64_t>(column.categories.size()), "name");
    report.warning = warn_of_names(column, present);
    return report;
  }
  std::vector<double> present;
  for (const double number : column.numbers)
    if (!std::isnan(number)) present.push_back(number);
  std::vector<int64_t> rows(present.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int64_t>(i);
  const Spread spread(present, rows);
  report.missing = static_cast<int64_t>(column.numbers.size() - present.size());
  report.use = "number";
  if (!present.empty()) {
    const auto [least, largest] = std::minmax_element(present.begin(), present.end());
    report.content = fmt::format("{:.6g} to {:.6g}, mean {:.6g}", *least, *largest, spread.mean);
  }
  report.warning = warn_of_numbers(column, present, spread);
  return report;
}

}  // namespace

bool has_decimal_commas(const Table& table) {
  return std::ranges::any_of(table.columns, [](const Column& column) {
    return column.categorical && most(column.categories, has_decimal_comma);
  });
}

std::vector<ColumnReport> describe_columns(const Table& table, const TableOptions& options) {
  const std::string target = options.target.empty() ? table.columns.back().name : options.target;
  std::vector<ColumnReport> reports;
  for (const Column& column : table.columns) {
    ColumnReport report = describe(column);
    if (column.name == target) {
      report.use = "target";
      report.warning = warn_of_target(column, report.missing);
    } else if (is_one_of(options.ignore, column.name)) {
      report.use = "left out";
      report.warning.clear();
    } else if (is_one_of(options.categorical, column.name)) {
      report.use = "names";
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace artel::data
