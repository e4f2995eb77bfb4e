// Records of comma-separated values, one after the other, however long the file.
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
  // The first line is one if none of its fields is a number or missing. Names may be missing where
  // the second line has numbers, as pandas writes its index column.
  automatic,
  present,
  absent,  // columns are called "column 1", "column 2", ...
};

struct CsvOptions {
  char separator = 0;  // 0: whichever of , ; and tab is most frequent in the first line
  CsvHeader header = CsvHeader::automatic;
  bool decimal_comma = false;  // 1,5 is a number, and is read as 1.5
};

// Whether a field stands for a missing value: "", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN",
// "nan", "-nan", "NULL" or "null".
bool is_missing(std::string_view field);

// Reads values as RFC 4180 describes them: fields may be quoted, quotes are doubled inside, lines
// end in LF or CRLF; a byte order mark is skipped. A column without a name is named after its
// position, like those of a file without a header. Throws an Error of kind corrupt that names file
// and line, also for duplicate column names.
class CsvReader {
 public:
  explicit CsvReader(Bytes bytes, const CsvOptions& options = {});

  const std::string& name() const { return bytes_.name; }
  const std::vector<std::string>& columns() const { return columns_; }
  // Of the last record, from 1.
  int64_t line() const { return record_line_; }

  // Where a record begins.
  struct Place {
    size_t at = 0;
    int64_t line = 1;
  };
  // All of the file, and where the next record begins in it.
  std::string_view text() const { return text_; }
  size_t place() const { return at_; }
  int64_t next_line() const { return line_; }
  // A reader of the records that begin in [begin, end); `begin` is the start of a record, on line
  // `line`.
  CsvReader part(size_t begin, size_t end, int64_t line) const;

  // False at the end. As many fields as there are columns, which are good until the next call.
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
  std::deque<std::string> unquoted_;  // fields of the record that are not as they are in the file
};

}  // namespace artel::data
