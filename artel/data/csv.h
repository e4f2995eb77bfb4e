// Tables of text: numbers and categories in columns.
//
//   const artel::data::Table table = artel::data::parse_csv(artel::map_file("houses.csv"));
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "artel/data/column_values.h"
#include "artel/data/csv_reader.h"

namespace artel::data {

// A column is numeric if all its present values are numbers, categorical otherwise.
struct Column {
  std::string name;
  bool categorical = false;
  ColumnValues<double> numbers;         // of a numeric column: finite; NaN where missing
  ColumnValues<int32_t> codes;          // of a categorical column: indices; -1 where missing
  std::vector<std::string> categories;  // sorted
};

struct Table {
  std::string name;  // for messages
  int64_t rows = 0;
  std::vector<Column> columns;
};

struct ParseOptions {
  CsvOptions csv = {};
  int threads = 0;                       // 0: all cores
  size_t piece_bytes = size_t{4} << 20;  // that a thread reads at a time
  // Columns that would take more memory than this lie in files without names in the folder, of
  // which only what is in use has to be in memory. Without a folder, all are in memory.
  uint64_t most_memory = 0;
  std::filesystem::path spill_folder = {};
};

// The whole of a file, as CsvReader reads it, in pieces by several threads; the result does not
// depend on their number. Throws the same errors, and for infinite numbers.
Table parse_csv(const Bytes& bytes, const ParseOptions& options = {});
// The rows of several files one after the other. Columns are those of the first file and are found
// by name in the others; throws for files with others.
Table parse_csv(const std::vector<Bytes>& files, const ParseOptions& options = {});
// The same for a path or a pattern (data/files.h). Columns that would take more than a quarter of
// the memory that this process may have lie in files in $ARTEL_DATA/tables.
Table read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

}  // namespace artel::data
