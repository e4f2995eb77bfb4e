#include "artel/data/tables/csv.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <numeric>
#include <optional>

#include "artel/base/error.h"
#include "artel/base/memory_limit.h"
#include "artel/base/text.h"
#include "artel/data/cores.h"
#include "artel/data/fetch.h"
#include "artel/data/files.h"
#include "artel/data/tables/csv_pieces.h"
#include "artel/data/tables/number.h"
#include "artel/data/tables/parquet.h"
#include "artel/data/tables/seen_names.h"

namespace artel::data {
namespace {

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

// A column of the table, as far as it has been read.
struct GrowingColumn {
  ColumnValues<double> numbers;
  bool has_word = false;
  std::string infinite;  // error message for the first number that is not finite
  ColumnValues<int32_t> codes;
  SeenNames names;

  void add(ColumnPart& part) {
    has_word = has_word || part.has_word;
    numbers.append(part.numbers);
    std::vector<int32_t> known;
    for (int32_t code = 0; code < part.names.size(); ++code)
      known.push_back(names.code_of(part.names.name(code)));
    for (int32_t& code : part.codes)
      if (code >= 0) code = known[static_cast<size_t>(code)];
    codes.append(part.codes);
  }

  // Names are sorted, and codes are their places then.
  void sort_names(std::vector<std::string>& sorted) {
    std::vector<int32_t> order(static_cast<size_t>(names.size()));
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(),
              [this](int32_t a, int32_t b) { return names.name(a) < names.name(b); });
    std::vector<int32_t> places(order.size());
    sorted.reserve(order.size());
    for (const int32_t code : order) {
      places[static_cast<size_t>(code)] = static_cast<int32_t>(sorted.size());
      sorted.emplace_back(names.name(code));
    }
    for (int32_t& code : codes)
      if (code >= 0) code = places[static_cast<size_t>(code)];
  }
};

int64_t pieces_of(const std::vector<Bytes>& files, const ParseOptions& options) {
  size_t pieces = 0;
  for (const Bytes& bytes : files) pieces += 1 + bytes.data.size() / options.piece_bytes;
  return static_cast<int64_t>(pieces);
}

// Reads one or several files into columns. Threads parse a few pieces in parallel, then append them
// to the columns in parallel, so only a few pieces are in memory in addition to the columns.
class TableParser {
 public:
  TableParser(const std::vector<Bytes>& files, const ParseOptions& options)
      : options_(options),
        pool_(options.threads > 0 ? options.threads : cores_for(pieces_of(files, options))) {
    for (const Bytes& bytes : files) {
      readers_.emplace_back(bytes, options.csv);
      places_.push_back(places_in(readers_.back()));
    }
  }

  Table parse() {
    kinds_ = guess_kinds();
    begin_columns();
    for (size_t file = 0; file < readers_.size(); ++file) read_file(file);
    // Words that the first rows did not show.
    std::vector<ColumnKind> late(kinds_.size(), ColumnKind::unread);
    bool more = false;
    for (size_t c = 0; c < kinds_.size(); ++c) {
      if (!columns_[c].has_word) continue;
      kinds_[c] = late[c] = ColumnKind::words;
      columns_[c] = {};
      columns_[c].codes = values<int32_t>();
      more = true;
    }
    if (more) read_again(late);
    return table();
  }

 private:
  const CsvReader& first() const { return readers_.front(); }

  // The positions of the first file's columns in another file.
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
        break;  // the full parse reports the error
      }
      for (size_t c = 0; c < kinds.size(); ++c)
        if (!is_missing(fields[c]) && !parse_number(fields[c])) kinds[c] = ColumnKind::words;
    }
    return kinds;
  }

  // Cuts the files, counts their lines, and decides where the columns are to lie.
  void begin_columns() {
    for (const CsvReader& reader : readers_) {
      pieces_.push_back(cut_pieces(pool_, reader, options_.piece_bytes));
      const CsvPiece& last = pieces_.back().back();
      const std::string_view text = reader.text().substr(last.begin, last.end - last.begin);
      lines_ += static_cast<size_t>(last.line + std::count(text.begin(), text.end(), '\n'));
    }
    const uint64_t bytes = uint64_t{lines_} * kinds_.size() * sizeof(double);
    if (bytes > options_.most_memory) spills_to_ = options_.spill_folder;
    std::error_code ignored;  // a later use of the folder reports the error
    if (!spills_to_.empty()) std::filesystem::create_directories(spills_to_, ignored);
    columns_.resize(kinds_.size());
    for (size_t c = 0; c < kinds_.size(); ++c)
      if (kinds_[c] == ColumnKind::numbers)
        columns_[c].numbers = values<double>();
      else
        columns_[c].codes = values<int32_t>();
  }

  template <typename T>
  ColumnValues<T> values() const {
    return ColumnValues<T>(lines_, spills_to_);
  }

  // Pieces are right up to the first that was cut wrongly; from there on they follow each other.
  void read_file(size_t file) {
    const std::vector<CsvPiece>& pieces = pieces_[file];
    rows_before_ = 0;
    for (size_t begin = 0; begin < pieces.size();) {
      const size_t end = std::min(pieces.size(), begin + pieces_at_a_time());
      std::vector<PartOfTable> parts;
      for (size_t i = begin; i < end; ++i) parts.push_back({.file = file, .piece = pieces[i]});
      pool_.run(std::ssize(parts), [&](int64_t i) { read(parts[static_cast<size_t>(i)], kinds_); });
      const auto wrong = std::find_if(parts.begin(), parts.end(), [](const PartOfTable& part) {
        return part.error || !part.whole;
      });
      const size_t right = static_cast<size_t>(wrong - parts.begin());
      parts.resize(right);
      take(parts);
      if (right < end - begin) return read_in_order(file, pieces[begin + right]);
      begin = end;
    }
  }

  // To the end of the file, piece after piece: each begins where the one before has ended.
  void read_in_order(size_t file, CsvPiece piece) {
    constexpr size_t kLeast = 1000;  // bytes
    const size_t end = readers_[file].text().size();
    const size_t size = std::max(kLeast, options_.piece_bytes);
    while (piece.begin < end) {
      std::vector<PartOfTable> parts(1);
      parts[0].file = file;
      parts[0].piece = {piece.begin, std::min(end, piece.begin + size), piece.line};
      const CsvReader::Place next = read(parts[0], kinds_);
      if (parts[0].error) std::rethrow_exception(parts[0].error);
      parts[0].piece.end = next.at;
      piece = {next.at, end, next.line};
      take(parts);
    }
  }

  // Enough to keep all threads busy, but small compared with a large table.
  size_t pieces_at_a_time() const {
    constexpr size_t kBytes = size_t{16} << 20;
    return std::max(4 * static_cast<size_t>(pool_.threads()), kBytes / options_.piece_bytes);
  }

  // Reads all columns that have a kind. Returns the position of the next record.
  CsvReader::Place read(PartOfTable& part, const std::vector<ColumnKind>& kinds) const {
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
    return {reader.place(), reader.next_line()};
  }

  // Appends the parsed pieces to the columns.
  void take(std::vector<PartOfTable>& parts) {
    for (const PartOfTable& part : parts) {
      for (size_t c = 0; c < columns_.size(); ++c)
        if (const auto& infinite = part.columns[c].infinite;
            infinite && columns_[c].infinite.empty())
          columns_[c].infinite = fmt::format(
              "[{}] row {}: column '{}' is {}, expected a finite number, or nothing if it is "
              "missing",
              readers_[part.file].name(), rows_before_ + infinite->row + 1, first().columns()[c],
              infinite->text);
      rows_before_ += part.rows;
      rows_ += part.rows;
      taken_.push_back({.file = part.file, .piece = part.piece});
    }
    move_columns(parts);
  }

  void move_columns(std::vector<PartOfTable>& parts) {
    pool_.run(std::ssize(columns_), [&](int64_t c) {
      for (PartOfTable& part : parts) {
        columns_[static_cast<size_t>(c)].add(part.columns[static_cast<size_t>(c)]);
        part.columns[static_cast<size_t>(c)] = {};
      }
    });
  }

  // Some columns of all pieces.
  void read_again(const std::vector<ColumnKind>& kinds) {
    for (size_t begin = 0; begin < taken_.size(); begin += pieces_at_a_time()) {
      const size_t end = std::min(taken_.size(), begin + pieces_at_a_time());
      std::vector<PartOfTable> parts(taken_.begin() + static_cast<ptrdiff_t>(begin),
                                     taken_.begin() + static_cast<ptrdiff_t>(end));
      pool_.run(std::ssize(parts), [&](int64_t i) { read(parts[static_cast<size_t>(i)], kinds); });
      move_columns(parts);
    }
  }

  Table table() {
    Table table{first().name(), rows_, {}};
    if (readers_.size() > 1) table.name += fmt::format(" and {} more", readers_.size() - 1);
    for (const GrowingColumn& column : columns_)
      require(column.infinite.empty(), ErrorKind::corrupt, "{}", column.infinite);
    table.columns.resize(kinds_.size());
    pool_.run(std::ssize(kinds_), [&](int64_t i) {
      const auto c = static_cast<size_t>(i);
      Column& column = table.columns[c];
      column.name = first().columns()[c];
      column.categorical = kinds_[c] == ColumnKind::words;
      if (column.categorical) columns_[c].sort_names(column.categories);
      column.numbers = std::move(columns_[c].numbers);
      column.codes = std::move(columns_[c].codes);
      columns_[c].names = {};
    });
    return table;
  }

  const ParseOptions& options_;
  ThreadPool pool_;
  std::vector<CsvReader> readers_;
  std::vector<std::vector<size_t>> places_;  // of the columns in each file
  std::vector<std::vector<CsvPiece>> pieces_;
  size_t lines_ = 0;                 // of all files: at least as many as records
  std::filesystem::path spills_to_;  // empty: columns lie in memory
  std::vector<ColumnKind> kinds_;
  std::vector<GrowingColumn> columns_;
  std::vector<PartOfTable> taken_;      // metadata of the appended pieces
  int64_t rows_ = 0, rows_before_ = 0;  // of the table; of this file, before the next piece
};

}  // namespace

Table parse_csv(const Bytes& bytes, const ParseOptions& options) {
  return parse_csv(std::vector<Bytes>{bytes}, options);
}

Table parse_csv(const std::vector<Bytes>& files, const ParseOptions& options) {
  require(!files.empty(), ErrorKind::invalid_argument, "[csv] got no files, expected one or more");
  return TableParser(files, options).parse();
}

Table read_csv(const std::filesystem::path& path, const CsvOptions& options) {
  std::vector<Bytes> files;
  for (const std::filesystem::path& file : matching_files(path)) files.push_back(map_table(file));
  return parse_csv(files, {.csv = options,
                           .most_memory = memory_limit_bytes() / 4,
                           .spill_folder = data_folder() / "tables"});
}

}  // namespace artel::data
