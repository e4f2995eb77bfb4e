#include "artel/data/csv.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

#include "artel/base/text.h"
#include "artel/data/number.h"

namespace artel::data {
namespace {

constexpr size_t kMaxColumns = 1 << 16;

bool is_missing(std::string_view field) {
  for (const std::string_view word :
       {"", "?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NULL", "null"})
    if (field == word) return true;
  return false;
}

// Cuts text into records; a quoted field may hold separators, quotes and line ends.
class RecordReader {
 public:
  RecordReader(const Bytes& bytes, char separator)
      : name_(bytes.name), text_(bytes.text()), separator_(separator) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark
  }

  // The line on which the last record started, from 1.
  int64_t line() const { return record_line_; }

  // False at the end. Empty lines are skipped.
  bool next(std::vector<std::string>& fields) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) {
      line_ += text_[at_] == '\n';
      ++at_;
    }
    if (at_ >= text_.size()) return false;
    record_line_ = line_;
    fields.clear();
    do {
      require(fields.size() < kMaxColumns, ErrorKind::corrupt, "[{}] line {}: more than {} fields",
              name_, record_line_, kMaxColumns);
      fields.push_back(next_field());
    } while (at_ < text_.size() && text_[at_] == separator_ && ++at_);
    if (at_ < text_.size() && text_[at_] == '\r') ++at_;
    require(at_ >= text_.size() || text_[at_] == '\n', ErrorKind::corrupt,
            "[{}] line {}: text after the closing quote of field {}", name_, line_, fields.size());
    return true;
  }

 private:
  std::string next_field() {
    if (at_ < text_.size() && text_[at_] == '"') return quoted_field();
    size_t end = at_;
    while (end < text_.size() && text_[end] != separator_ && text_[end] != '\n') ++end;
    const std::string_view field = text_.substr(at_, end - at_);
    at_ = end;
    return std::string(trim(field));
  }

  std::string quoted_field() {
    std::string field;
    const int64_t opened = line_;
    for (++at_; at_ < text_.size(); ++at_) {
      const char c = text_[at_];
      if (c == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') {
          ++at_;
          return field;
        }
        ++at_;
      }
      line_ += c == '\n';
      field += c;
    }
    fail(ErrorKind::corrupt, "[{}] line {}: a quote is never closed", name_, opened);
  }

  std::string name_;
  std::string_view text_;
  char separator_;
  size_t at_ = 0;
  int64_t line_ = 1, record_line_ = 1;
};

char guess_separator(std::string_view text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  char best = ',';
  std::ptrdiff_t most = 0;
  for (const char candidate : {',', ';', '\t'}) {
    const auto count = std::count(line.begin(), line.end(), candidate);
    if (count > most) {
      most = count;
      best = candidate;
    }
  }
  return best;
}

// `second` is the line below, empty if there is none.
bool looks_like_header(const std::vector<std::string>& fields,
                       const std::vector<std::string>& second) {
  bool any_name = false, all_names = true;
  for (const std::string& field : fields) {
    if (parse_number(field) || (is_missing(field) && !field.empty())) return false;
    any_name |= !field.empty();
    all_names &= !field.empty();
  }
  return any_name && (all_names || std::any_of(second.begin(), second.end(), parse_number));
}

std::vector<std::string> column_names(std::vector<std::string> names, const std::string& where) {
  std::set<std::string> seen;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) names[i] = fmt::format("column {}", i + 1);
    require(seen.insert(names[i]).second, ErrorKind::corrupt,
            "{}: two columns are called '{}', expected different names; rename one", where,
            names[i]);
  }
  return names;
}

// Numbers, NaN where missing; nothing if some field is a word.
std::optional<std::vector<double>> to_numbers(const std::vector<std::string>& fields) {
  std::vector<double> numbers;
  for (const std::string& field : fields) {
    const std::optional<double> number =
        is_missing(field) ? std::numeric_limits<double>::quiet_NaN() : parse_number(field);
    if (!number) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

Column make_column(std::string name, const std::vector<std::string>& fields,
                   const std::string& file) {
  Column column{std::move(name)};
  if (auto numbers = to_numbers(fields)) {
    column.numbers = std::move(*numbers);
    for (size_t i = 0; i < fields.size(); ++i)
      require(!std::isinf(column.numbers[i]), ErrorKind::corrupt,
              "[{}] row {}: column '{}' is {}, expected a finite number, or nothing if it is "
              "missing",
              file, i + 1, column.name, fields[i]);
    return column;
  }
  column.categorical = true;
  std::map<std::string, int32_t> codes;
  for (const std::string& field : fields)
    if (!is_missing(field)) codes[field] = 0;
  for (auto& [category, code] : codes) {
    code = static_cast<int32_t>(column.categories.size());
    column.categories.push_back(category);
  }
  for (const std::string& field : fields)
    column.codes.push_back(is_missing(field) ? -1 : codes[field]);
  return column;
}

}  // namespace

Table parse_csv(const Bytes& bytes, const CsvOptions& options) {
  RecordReader reader(bytes, options.separator ? options.separator : guess_separator(bytes.text()));
  std::vector<std::string> fields, second;
  require(reader.next(fields), ErrorKind::corrupt, "[{}] line 1: the file is empty", bytes.name);
  bool header = options.header == CsvHeader::present;
  if (options.header == CsvHeader::automatic) {
    RecordReader(reader).next(second);
    header = looks_like_header(fields, second);
  }
  const std::vector<std::string> names =
      column_names(header ? fields : std::vector<std::string>(fields.size()),
                   fmt::format("[{}] line {}", bytes.name, reader.line()));
  std::vector<std::vector<std::string>> columns(names.size());
  for (bool more = !header || reader.next(fields); more; more = reader.next(fields)) {
    require(fields.size() == names.size(), ErrorKind::corrupt,
            "[{}] line {}: got {} fields, expected {}", bytes.name, reader.line(), fields.size(),
            names.size());
    for (size_t i = 0; i < fields.size(); ++i) columns[i].push_back(std::move(fields[i]));
  }
  Table table{bytes.name, static_cast<int64_t>(columns[0].size()), {}};
  for (size_t i = 0; i < names.size(); ++i)
    table.columns.push_back(make_column(names[i], columns[i], bytes.name));
  return table;
}

}  // namespace artel::data
