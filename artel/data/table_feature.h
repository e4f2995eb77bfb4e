// One column of a table and the inputs that it becomes, as learnt from the training rows.
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

#include "artel/data/csv.h"
#include "artel/data/dates.h"

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
  double mean = 0, deviation = 1;            // of numbers, or of the seconds of dates
  double year_mean = 0, year_deviation = 1;  // of dates
  DateFormat date = {};
  bool flags_missing = false;
  bool of_numbers = false;                   // the names are numbers: 7.0 is called 7
  std::vector<std::string> categories = {};  // sorted

  int64_t width() const;
  // Both write `width()` inputs that were 0. NaN and "" stand for missing values. Returns false for
  // a number that is too far from those of the training rows, a name that they did not have, and
  // a text that is not a date.
  bool write(double number, float* to) const;
  bool write(std::string_view name, float* to) const;

 private:
  bool write_date(std::string_view text, float* to) const;
};

// Learns from these rows. With `as_names`, numbers and dates are names.
TableFeature learn_feature(const Table& table, const Column& column,
                           const std::vector<int64_t>& rows, bool as_names);

// The column of that name. Throws if there is none, with the nearest name.
const Column& find_column(const Table& table, const std::string& name);
// Whether a value is missing.
bool is_missing(const Column& column, int64_t row);
// Whether the values of a target are classes: names, or at most 20 different whole numbers.
bool are_classes(const Column& column, const std::vector<int64_t>& rows);
// What a number is called as a category.
std::string name_of_number(double number);
// A present value of any column as a category.
std::string category_of(const Column& column, int64_t row);

}  // namespace artel::data
