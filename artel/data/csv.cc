#include "artel/data/csv.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <optional>
#include <unordered_map>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/data/cores.h"
#include "artel/data/csv_pieces.h"
#include "artel/data/files.h"
#include "artel/data/number.h"

namespace artel::data {
namespace {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>()(text); }
};

// Names in the order in which they were seen.
class SeenNames {
 public:
  int32_t code_of(std::string_view name) {
    const auto found = codes_.find(name);
    if (found != codes_.end()) return found->second;
    const auto code = static_cast<int32_t>(names_.size());
    names_.emplace_back(name);
    codes_.emplace(names_.back(), code);
    return code;
  }
  const std::vector<std::string>& names() const { return names_; }

 private:
  std::vector<std::string> names_;
  std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>> codes_;
};

enum class ColumnKind : char { numbers, words, unread };

struct InfiniteField {
  int64_t row;
  std::string text;
};

// A column of a piece, read as numbers or as words.
struct ColumnPart {
  std::vector<double> numbers;  // NaN where missing, or where a word is
  bool has_word = false;        // so the numbers are not to be used
  std::optional<InfiniteField> infinite;
  std::vector<int32_t> codes;
  SeenNames names;

  void add(ColumnKind kind, std::string_view field, int64_t row) {
    const bool missing = is_missing(field);
    if (kind == ColumnKind::words) {
      codes.push_back(missing ? -1 : names.code_of(field));
      return;
    }
    const std::optional<double> number = missing ? std::nullopt : parse_number(field);
    if (!missing && !number) has_word = true;
    numbers.push_back(number.value_or(std::numeric_limits<double>::quiet_NaN()));
    if (number && std::isinf(*number) && !infinite) infinite = {row, std::string(field)};
  }
};

// The records of a piece of one of the files.
struct PartOfTable {
  size_t file = 0;
  CsvPiece piece;
  int64_t rows = 0;
  bool whole = false;  // its last record ends where the next piece begins
  std::exception_ptr error;
  std::vector<ColumnPart> columns;
};

// Reads one or several files into columns.
class TableParser {
 public:
  TableParser(const std::vector<Bytes>& files, const ParseOptions& options)
      : options_(options), pool_(options.threads > 0 ? options.threads : all_cores()) {
    for (const Bytes& bytes : files) {
      readers_.emplace_back(bytes, options.csv);
      places_.push_back(places_in(readers_.back()));
    }
  }

  Table parse() {
    kinds_ = guess_kinds();
    read_all();
    // Words that the first rows did not show.
    bool more = false;
    for (size_t c = 0; c < kinds_.size(); ++c) {
      const bool words = kinds_[c] == ColumnKind::numbers &&
                         std::any_of(parts_.begin(), parts_.end(), [&](const PartOfTable& part) {
                           return part.columns[c].has_word;
                         });
      kinds_[c] = words ? ColumnKind::words : kinds_[c];
      late_.push_back(words);
      more |= words;
    }
    if (more) read_late_words();
    return table();
  }

 private:
  const CsvReader& first() const { return readers_.front(); }

  // Where the columns of the first file are in another one.
  std::vector<size_t> places_in(const CsvReader& reader) const {
    std::vector<size_t> places;
    require(reader.columns().size() == first().columns().size(), ErrorKind::corrupt,
            "[{}] has {} columns, but {} has {}", reader.name(), reader.columns().size(),
            first().name(), first().columns().size());
    for (const std::string& name : first().columns()) {
      const auto found = std::find(reader.columns().begin(), reader.columns().end(), name);
      require(found != reader.columns().end(), ErrorKind::corrupt,
              "[{}] has no column '{}', which {} has{}", reader.name(), name, first().name(),
              did_you_mean(name, reader.columns()));
      places.push_back(static_cast<size_t>(found - reader.columns().begin()));
    }
    return places;
  }

  // Columns with a word in one of the first rows.
  std::vector<ColumnKind> guess_kinds() const {
    constexpr int kRows = 100;
    std::vector<ColumnKind> kinds(first().columns().size(), ColumnKind::numbers);
    CsvReader reader = first();
    std::vector<std::string_view> fields;
    for (int row = 0; row < kRows; ++row) {
      try {
        if (!reader.next(fields)) break;
      } catch (const Error&) {
        break;  // whoever reads all says so
      }
      for (size_t c = 0; c < kinds.size(); ++c)
        if (!is_missing(fields[c]) && !parse_number(fields[c])) kinds[c] = ColumnKind::words;
    }
    return kinds;
  }

  void read_all() {
    for (size_t file = 0; file < readers_.size(); ++file) {
      const size_t begin = parts_.size();
      for (const CsvPiece& piece : cut_pieces(pool_, readers_[file], options_.piece_bytes))
        parts_.push_back({.file = file, .piece = piece});
      pool_.run(static_cast<int64_t>(parts_.size() - begin),
                [&](int64_t i) { read(parts_[begin + static_cast<size_t>(i)], kinds_); });
      check_from(begin);
    }
  }

  // Reads all columns that have a kind.
  void read(PartOfTable& part, const std::vector<ColumnKind>& kinds) const {
    part.columns.resize(kinds.size());
    part.rows = 0;
    const std::vector<size_t>& places = places_[part.file];
    CsvReader reader = readers_[part.file].part(part.piece.begin, part.piece.end, part.piece.line);
    try {
      std::vector<std::string_view> fields;
      for (; reader.next(fields); ++part.rows)
        for (size_t c = 0; c < kinds.size(); ++c)
          if (kinds[c] != ColumnKind::unread)
            part.columns[c].add(kinds[c], fields[places[c]], part.rows);
    } catch (...) {
      part.error = std::current_exception();
    }
    part.whole = reader.place() == part.piece.end;
  }

  // Pieces are in order up to the first that was cut wrongly; from there on they are read as one.
  void check_from(size_t begin) {
    for (size_t i = begin; i < parts_.size(); ++i) {
      if (!parts_[i].error && parts_[i].whole) continue;
      if (i + 1 < parts_.size()) {
        PartOfTable rest = {.file = parts_[i].file, .piece = parts_[i].piece};
        rest.piece.end = parts_.back().piece.end;
        parts_.resize(i);
        read(rest, kinds_);
        parts_.push_back(std::move(rest));
      }
      if (parts_[i].error) std::rethrow_exception(parts_[i].error);
      return;
    }
  }

  void read_late_words() {
    std::vector<ColumnKind> kinds(kinds_.size(), ColumnKind::unread);
    for (size_t c = 0; c < kinds.size(); ++c)
      if (late_[c]) kinds[c] = ColumnKind::words;
    pool_.run(static_cast<int64_t>(parts_.size()), [&](int64_t i) {
      PartOfTable& part = parts_[static_cast<size_t>(i)];
      for (size_t c = 0; c < kinds.size(); ++c)
        if (late_[c]) part.columns[c] = {};
      read(part, kinds);
    });
  }

  Table table() {
    Table table{first().name(), 0, {}};
    if (readers_.size() > 1) table.name += fmt::format(" and {} more", readers_.size() - 1);
    for (const PartOfTable& part : parts_) {
      first_row_.push_back(table.rows);
      table.rows += part.rows;
    }
    table.columns.resize(kinds_.size());
    pool_.run(std::ssize(kinds_), [&](int64_t i) {
      const auto c = static_cast<size_t>(i);
      table.columns[c] =
          kinds_[c] == ColumnKind::numbers ? numbers(c, table.rows) : words(c, table.rows);
    });
    return table;
  }

  Column numbers(size_t c, int64_t rows) {
    Column column{.name = first().columns()[c]};
    column.numbers.reserve(static_cast<size_t>(rows));
    for (size_t p = 0; p < parts_.size(); ++p) {
      ColumnPart& part = parts_[p].columns[c];
      if (part.infinite)
        fail(ErrorKind::corrupt,
             "[{}] row {}: column '{}' is {}, expected a finite number, or nothing if it is "
             "missing",
             readers_[parts_[p].file].name(), row_in_file(p) + part.infinite->row + 1, column.name,
             part.infinite->text);
      column.numbers.insert(column.numbers.end(), part.numbers.begin(), part.numbers.end());
      part = {};
    }
    return column;
  }

  Column words(size_t c, int64_t rows) {
    Column column{.name = first().columns()[c], .categorical = true};
    std::vector<std::string>& all = column.categories;
    for (const PartOfTable& part : parts_) {
      const std::vector<std::string>& names = part.columns[c].names.names();
      all.insert(all.end(), names.begin(), names.end());
    }
    std::sort(all.begin(), all.end());
    all.erase(std::unique(all.begin(), all.end()), all.end());
    column.codes.reserve(static_cast<size_t>(rows));
    for (PartOfTable& part : parts_) {
      std::vector<int32_t> codes;
      for (const std::string& name : part.columns[c].names.names())
        codes.push_back(
            static_cast<int32_t>(std::lower_bound(all.begin(), all.end(), name) - all.begin()));
      for (const int32_t code : part.columns[c].codes)
        column.codes.push_back(code < 0 ? -1 : codes[static_cast<size_t>(code)]);
      part.columns[c] = {};
    }
    return column;
  }

  // Of the first row of a part.
  int64_t row_in_file(size_t part) const {
    size_t start = part;
    while (start > 0 && parts_[start - 1].file == parts_[part].file) --start;
    return first_row_[part] - first_row_[start];
  }

  const ParseOptions& options_;
  ThreadPool pool_;
  std::vector<CsvReader> readers_;
  std::vector<std::vector<size_t>> places_;  // of the columns in each file
  std::vector<ColumnKind> kinds_;
  std::vector<bool> late_;
  std::vector<PartOfTable> parts_;
  std::vector<int64_t> first_row_;  // of each part
};

}  // namespace

Table parse_csv(const Bytes& bytes, const ParseOptions& options) {
  return parse_csv(std::vector<Bytes>{bytes}, options);
}

Table parse_csv(const std::vector<Bytes>& files, const ParseOptions& options) {
  require(!files.empty(), ErrorKind::invalid_argument, "[csv] got no files, expected one or more");
  return TableParser(files, options).parse();
}

Table read_csv(const std::filesystem::path& path) {
  std::vector<Bytes> files;
  for (const std::filesystem::path& file : matching_files(path)) files.push_back(map_file(file));
  return parse_csv(files);
}

}  // namespace artel::data
