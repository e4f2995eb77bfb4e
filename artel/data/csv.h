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
  std::vector<float> numbers;           // of a numeric column; NaN where missing
  std::vector<int32_t> codes;           // of a categorical column: indices; -1 where missing
  std::vector<std::string> categories;  // sorted
};

struct Table {
  std::string name;  // for messages
  int64_t rows = 0;
  std::vector<Column> columns;
};

enum class CsvHeader {
  automatic,  // the first line is one if none of its fields is a number
  present,
  absent,  // columns are called "column 1", "column 2", ...
};

struct CsvOptions {
  char separator = 0;  // 0: the one of , ; and tab that the first line has most
  CsvHeader header = CsvHeader::automatic;
};

// Reads comma-separated values as RFC 4180 describes them: fields may be quoted, quotes are doubled
// inside, lines end in LF or CRLF. Missing are "", "NA", "NaN", "null" and "?". Throws an Error of
// kind corrupt that names file and line.
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
// that is 1 or 0, all 0 where missing or unseen.
class TableEncoder {
 public:
  TableEncoder(const Table& table, const std::vector<int64_t>& rows, const TableOptions& options);

  // Columns are found by name. Throws if one is missing, if a target is missing, or if its class
  // was not among the training rows.
  DatasetPtr encode(const Table& table, const std::vector<int64_t>& rows) const;

 private:
  struct Feature {
    std::string column;
    bool categorical = false;
    float mean = 0, deviation = 1;
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

// A file for training and one for tests; without the latter a random part of the former.
Split csv(const std::filesystem::path& train, const std::filesystem::path& test,
          double test_fraction, uint64_t seed, const TableOptions& options = {});

}  // namespace artel::data
