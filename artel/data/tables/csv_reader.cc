#include "artel/data/tables/csv_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <set>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/data/tables/number.h"

namespace artel::data {
namespace {

constexpr size_t kMaxColumns = 1 << 16;

// Position of the next separator or line end. Processes eight bytes at a time: bytes that are zero
// after the exclusive or match, and the lowest match is marked correctly.
size_t end_of_field(std::string_view text, size_t at, char separator) {
  constexpr uint64_t kOnes = 0x0101010101010101, kHighs = 0x8080808080808080;
  const uint64_t separators = kOnes * static_cast<unsigned char>(separator);
  constexpr uint64_t kLineEnds = kOnes * '\n';
  for (; at + sizeof(uint64_t) <= text.size(); at += sizeof(uint64_t)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data() + at, sizeof(word));
    const uint64_t a = word ^ separators, b = word ^ kLineEnds;
    const uint64_t zeros = (((a - kOnes) & ~a) | ((b - kOnes) & ~b)) & kHighs;
    if (zeros != 0) return at + static_cast<size_t>(std::countr_zero(zeros)) / 8;
  }
  while (at < text.size() && text[at] != separator && text[at] != '\n') ++at;
  return at;
}

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

// `second` is the second line; empty if the file has only one.
bool looks_like_header(const std::vector<std::string>& fields,
                       const std::vector<std::string_view>& second) {
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

}  // namespace

bool is_missing(std::string_view field) {
  if (field.empty()) return true;
  if (field.size() > 4) return false;
  for (const std::string_view word :
       {"?", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NULL", "null"})
    if (field == word) return true;
  return false;
}

CsvReader::CsvReader(Bytes bytes, const CsvOptions& options)
    : bytes_(std::move(bytes)), text_(bytes_.text()), end_(text_.size()) {
  if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;  // a byte order mark
  decimal_comma_ = options.decimal_comma;
  separator_ = options.separator ? options.separator : guess_separator(text_);
  const size_t begin = at_;
  std::vector<std::string_view> fields, second;
  require(read(fields), ErrorKind::corrupt, "[{}] line 1: the file is empty", name());
  const std::vector<std::string> first(fields.begin(), fields.end());
  const std::string where = fmt::format("[{}] line {}", name(), record_line_);
  const size_t after = at_;
  const int64_t line_after = line_;
  bool header = options.header == CsvHeader::present;
  if (options.header == CsvHeader::automatic) {
    read(second);
    header = looks_like_header(first, second);
  }
  columns_ = column_names(header ? first : std::vector<std::string>(first.size()), where);
  at_ = header ? after : begin;
  line_ = header ? line_after : 1;
}

CsvReader CsvReader::part(size_t begin, size_t end, int64_t line) const {
  CsvReader reader = *this;
  reader.at_ = begin;
  reader.end_ = end;
  reader.line_ = line;
  return reader;
}

bool CsvReader::next(std::vector<std::string_view>& fields) {
  if (!read(fields)) return false;
  require(fields.size() == columns_.size(), ErrorKind::corrupt,
          "[{}] line {}: got {} fields, expected {}", name(), record_line_, fields.size(),
          columns_.size());
  return true;
}

// Empty lines are skipped.
bool CsvReader::read(std::vector<std::string_view>& fields) {
  while (at_ < end_ && (text_[at_] == '\n' || text_[at_] == '\r')) {
    line_ += text_[at_] == '\n';
    ++at_;
  }
  fields.clear();
  unquoted_.clear();
  if (at_ >= end_) return false;
  record_line_ = line_;
  do {
    require(fields.size() < kMaxColumns, ErrorKind::corrupt, "[{}] line {}: more than {} fields",
            name(), record_line_, kMaxColumns);
    fields.push_back(read_field());
  } while (at_ < text_.size() && text_[at_] == separator_ && ++at_);
  if (decimal_comma_)
    for (std::string_view& field : fields) field = with_point(field);
  if (at_ < text_.size() && text_[at_] == '\r') ++at_;
  require(at_ >= text_.size() || text_[at_] == '\n', ErrorKind::corrupt,
          "[{}] line {}: text after the closing quote of field {}", name(), line_, fields.size());
  return true;
}

std::string_view CsvReader::read_field() {
  if (at_ < text_.size() && text_[at_] == '"') return read_quoted();
  const size_t end = end_of_field(text_, at_, separator_);
  const std::string_view field = text_.substr(at_, end - at_);
  at_ = end;
  const bool bare = field.empty() || (field.front() > ' ' && field.back() > ' ');  // most are
  return bare ? field : trim(field);
}

// Replaces the comma of a number by a point. Returns other fields unchanged.
std::string_view CsvReader::with_point(std::string_view field) {
  const std::optional<std::string> number = with_decimal_point(field);
  return number ? std::string_view(unquoted_.emplace_back(*number)) : field;
}

std::string_view CsvReader::read_quoted() {
  std::string& field = unquoted_.emplace_back();
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
  fail(ErrorKind::corrupt, "[{}] line {}: a quote is never closed", name(), opened);
}

}  // namespace artel::data
