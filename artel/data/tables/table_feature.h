// The encoding of one column of a table, learned from the training rows.
//
//   const artel::data::Table table = artel::data::parse_csv(artel::map_file("houses.csv"));
//   const auto feature = artel::data::learn_feature(table, table.columns[0], {0, 1, 2}, false);
//   std::vector<float> inputs(feature.width());
//   feature.write(2.5, inputs.data());
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artel/data/tables/csv.h"
#include "artel/data/tables/dates.h"

namespace artel::data {

//   number   shifted and scaled to mean 0 and deviation 1, with missing ones set to the mean. If
//            some were missing in the training rows, a second input is 1 where it is missing.
//   names    one input for each category, 1 or 0; all 0 where missing or unseen.
//   hashed   names of more than kMostCategories kinds share kBuckets inputs by their hash.
//   date     elapsed time and year, scaled like numbers; month, weekday and, if there are times of
//            day, the hour as points on a circle, so that December is next to January.
struct TableFeature {
  enum class Kind { number, names, hashed, date };
  static constexpr size_t kMostCategories = 1000;
  static constexpr int64_t kBuckets = 256;

  std::string column;
  Kind kind = Kind::number;
  double mean = 0, deviation = 1;            // of numbers, or of dates in seconds
  double year_mean = 0, year_deviation = 1;  // of dates
  DateFormat date = {};
  bool flags_missing = false;
  bool of_numbers = false;                   // names are numbers: 7.0 is named 7
  std::vector<std::string> categories = {};  // sorted

  int64_t width() const;
  // Write `width()` inputs, which must be 0 before. NaN and "" are missing values. Return false for
  // a number too far from the training rows, an unknown name, or a text that is not a date.
  bool write(double number, float* to) const;
  bool write(std::string_view name, float* to) const;

 private:
  bool write_date(std::string_view text, float* to) const;
};

// Learns the encoding from these rows. With `as_names`, treats numbers and dates as names.
TableFeature learn_feature(const Table& table, const Column& column,
                           const std::vector<int64_t>& rows, bool as_names);

// Finds a column by name. Throws for an unknown name and suggests the nearest one.
const Column& find_column(const Table& table, const std::string& name);
// True if the value is missing.
bool is_missing(const Column& column, int64_t row);
// True if the values of a target are classes: names, or at most 20 distinct whole numbers.
bool are_classes(const Column& column, const std::vector<int64_t>& rows);
// The category name of a number.
std::string name_of_number(double number);
// The category name of a value that is not missing.
std::string category_of(const Column& column, int64_t row);

}  // namespace artel::data
