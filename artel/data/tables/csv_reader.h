// Streaming reader of comma-separated values.
//
//   artel::data::CsvReader reader(artel::map_file("houses.csv"));
//   std::vector<std::string_view> fields;
//   while (reader.next(fields)) artel::println("line {}: {}", reader.line(), fields.front());
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/bytes.h"

namespace artel::data {

enum class CsvHeader {
  // The first line is a header if none of its fields is a number or missing. A name may be missing
  // if the second line has a number there, as in pandas' index column.
  automatic,
  present,
  absent,  // columns are named "column 1", "column 2", ...
};

struct CsvOptions {
  char separator = 0;  // 0 selects the most frequent of , ; and tab in the first line
  CsvHeader header = CsvHeader::automatic;
  bool decimal_comma = false;  // reads 1,5 as 1.5
};

// True for a missing value: "", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan",
// "NULL", or "null".
bool is_missing(std::string_view field);

// Reads RFC 4180: fields may be quoted, with doubled quotes inside; lines end in LF or CRLF. Skips
// a byte order mark. A column without a name is named after its position. Throws an Error of kind
// corrupt with file and line, also for duplicate column names.
class CsvReader {
 public:
  explicit CsvReader(Bytes bytes, const CsvOptions& options = {});

  const std::string& name() const { return bytes_.name; }
  const std::vector<std::string>& columns() const { return columns_; }
  // Line number of the last record, from 1.
  int64_t line() const { return record_line_; }

  // The start of a record.
  struct Place {
    size_t at = 0;
    int64_t line = 1;
  };
  // The whole file, and the start of the next record in it.
  std::string_view text() const { return text_; }
  size_t place() const { return at_; }
  int64_t next_line() const { return line_; }
  // A reader of the records that begin in [begin, end); `begin` is the start of a record, on line
  // `line`.
  CsvReader part(size_t begin, size_t end, int64_t line) const;

  // Reads the next record, one field per column. Returns false at the end. Fields are valid until
  // the next call.
  bool next(std::vector<std::string_view>& fields);

 private:
  bool read(std::vector<std::string_view>& fields);
  std::string_view read_field();
  std::string_view read_quoted();
  std::string_view with_point(std::string_view field);

  Bytes bytes_;
  std::string_view text_;
  char separator_ = ',';
  bool decimal_comma_ = false;
  std::vector<std::string> columns_;
  size_t at_ = 0, end_ = 0;
  int64_t line_ = 1, record_line_ = 1;
  std::deque<std::string> unquoted_;  // unescaped fields of the current record
};

}  // namespace artel::data
