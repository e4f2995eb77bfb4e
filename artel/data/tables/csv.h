// Tables of text: numbers and categories in columns.
//
//   const artel::data::Table table = artel::data::parse_csv(artel::map_file("houses.csv"));
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "artel/data/tables/column_values.h"
#include "artel/data/tables/csv_reader.h"

namespace artel::data {

// A column is numeric if all its present values are numbers, categorical otherwise.
struct Column {
  std::string name;
  bool categorical = false;
  ColumnValues<double> numbers;         // numeric column: finite, or NaN if missing
  ColumnValues<int32_t> codes;          // categorical column: indices, or -1 if missing
  std::vector<std::string> categories;  // sorted
};

struct Table {
  std::string name;  // for messages
  int64_t rows = 0;
  std::vector<Column> columns;
};

struct ParseOptions {
  CsvOptions csv = {};
  int threads = 0;                       // 0 uses all cores
  size_t piece_bytes = size_t{4} << 20;  // unit of work of a thread
  // Columns that would exceed this memory are backed by unnamed temporary files in `folder`.
  // Without a folder, all columns stay in memory.
  uint64_t most_memory = 0;
  std::filesystem::path spill_folder = {};
};

// Parses a whole file with several threads; the result does not depend on their number. Throws the
// errors of CsvReader, and for infinite numbers.
Table parse_csv(const Bytes& bytes, const ParseOptions& options = {});
// Concatenates the rows of several files. Columns are those of the first file, found by name in the
// others. Throws if columns differ.
Table parse_csv(const std::vector<Bytes>& files, const ParseOptions& options = {});
// Parses the files of a path or pattern (data/files.h). Columns that would exceed a quarter of the
// available memory spill to files in $ARTEL_DATA/tables.
Table read_csv(const std::filesystem::path& path, const CsvOptions& options = {});

}  // namespace artel::data
