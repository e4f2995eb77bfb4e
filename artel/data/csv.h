// Tables of text: numbers and categories in columns, one of which is to be predicted.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/data/dataset.h"

namespace artel::data {

// A column is numeric if all its present values are numbers, categorical otherwise.
struct Column {
  std::string name;
  bool categorical = false;
  std::vector<double> numbers;          // of a numeric column: finite; NaN where missing
  std::vector<int32_t> codes;           // of a categorical column: indices; -1 where missing
  std::vector<std::string> categories;  // sorted
};

struct Table {
  std::string name;  // for messages
  int64_t rows = 0;
  std::vector<Column> columns;
};

enum class CsvHeader {
  // The first line is one if none of its fields is a number or missing. Names may be left out, as
  // pandas does for its index, where the second line has numbers.
  automatic,
  present,
  absent,  // columns are called "column 1", "column 2", ...
};

struct CsvOptions {
  char separator = 0;  // 0: the one of , ; and tab that the first line has most
  CsvHeader header = CsvHeader::automatic;
};

// Reads comma-separated values as RFC 4180 describes them: fields may be quoted, quotes are doubled
// inside, lines end in LF or CRLF; a byte order mark is skipped. Missing are "", "?", "NA", "N/A",
// "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NULL" and "null". A column without a name is called
// by its place, like those of a file without a header. Throws an Error of kind corrupt that names
// file and line, also if two columns have one name, and for an infinite number.
Table parse_csv(const Bytes& bytes, const CsvOptions& options = {});

enum class Task {
  automatic,  // classes if the target is categorical, or whole numbers of at most 20 kinds
  classes,
  values,
};

struct TableOptions {
  std::string target;  // name of the column; "" is the last one
  Task task = Task::automatic;
};

// Turns rows into inputs and targets, as learnt from the training rows: numbers are shifted and
// scaled to mean 0 and deviation 1, with missing ones at the mean; each category becomes one input
// that is 1 or 0, all 0 where missing or unseen. Only what comes out is rounded to f32, so that
// numbers far from 0 that differ little, such as times, keep their digits.
class TableEncoder {
 public:
  // Throws if values of the target differ too little for f32, which they are predicted in.
  TableEncoder(const Table& table, const std::vector<int64_t>& rows, const TableOptions& options);

  // Columns are found by name. Throws if one is missing, if a target is missing, or if its class
  // was not among the training rows.
  DatasetPtr encode(const Table& table, const std::vector<int64_t>& rows) const;

 private:
  struct Feature {
    std::string column;
    bool categorical = false;
    double mean = 0, deviation = 1;
    std::vector<std::string> categories;
  };

  int64_t width() const;
  void write_feature(const Feature& feature, const Table& table, const std::vector<int64_t>& rows,
                     int64_t first, Tensor& inputs) const;

  std::vector<Feature> features_;
  std::string target_;
  bool classes_ = false;
  std::vector<std::string> class_names_;
};

// A file for training and one for tests; without the latter a random part of the former. A column
// that is categorical although most of its fields are numbers gets a line in the log.
Split csv(const std::filesystem::path& train, const std::filesystem::path& test,
          double test_fraction, uint64_t seed, const TableOptions& options = {});

}  // namespace artel::data
