#include "artel/data/tables/csv_set.h"

#include <fmt/ranges.h>
#include <unistd.h>

#include <bit>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/file_lock.h"
#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/base/text.h"
#include "artel/base/thread_pool.h"
#include "artel/data/cores.h"
#include "artel/data/fetch.h"
#include "artel/data/files.h"
#include "artel/data/tables/kept_tables.h"
#include "artel/data/tables/number.h"
#include "artel/tensor/npy.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

constexpr uint64_t kKeptFrom = 16 << 20;  // bytes; smaller tables are parsed in no time
constexpr uint64_t kKeptVersion = 3;      // of the files, and of how columns are encoded

// Warns when an unusual word for missing values turns a numeric column into categories.
void warn_of_mixed_columns(const Table& table) {
  for (const Column& column : table.columns) {
    int64_t numbers = 0, words = 0;
    const std::string* word = nullptr;
    for (const int32_t code : column.codes) {
      if (code < 0) continue;
      const bool number = parse_number(column.categories[code]).has_value();
      ++(number ? numbers : words);
      if (!number && !word) word = &column.categories[code];
    }
    if (word && numbers > words)
      log(LogLevel::warning,
          "[{}] column '{}' is treated as categorical because of '{}', although {} of its {} "
          "fields "
          "are numbers; leave fields empty where a number is missing",
          table.name, column.name, *word, numbers, numbers + words);
  }
}

// Logs how many rows have no target.
std::vector<int64_t> rows_with_target(const Table& table, const std::string& name) {
  const Column& target = name.empty() ? table.columns.back() : find_column(table, name);
  std::vector<int64_t> rows;
  for (int64_t i = 0; i < table.rows; ++i)
    if (!is_missing(target, i)) rows.push_back(i);
  require(!rows.empty(), ErrorKind::corrupt, "[{}] no row has a target: column '{}' is empty",
          table.name, target.name);
  if (const int64_t without = table.rows - static_cast<int64_t>(rows.size()); without > 0)
    log(LogLevel::warning, "[{}] {} of {} rows are left out: their target '{}' is missing",
        table.name, format_count(without), format_count(table.rows), target.name);
  return rows;
}

// The number of each row's class; empty if the target has values.
std::vector<double> classes_in(const Table& table, const TableOptions& options,
                               const std::vector<int64_t>& rows) {
  const Column& target =
      options.target.empty() ? table.columns.back() : find_column(table, options.target);
  if (options.task == Task::values ||
      (options.task == Task::automatic && !are_classes(target, rows)))
    return {};
  std::vector<double> classes;
  for (const int64_t row : rows)
    classes.push_back(target.categorical ? target.codes[row] : target.numbers[row]);
  return classes;
}

struct TableRequest {
  const fs::path &train, &test;
  double test_fraction;
  uint64_t seed;
  const TableOptions& options;
  const std::shared_ptr<const TableEncoder>& learnt;
};

// Rows of a table that are the samples of one part.
struct PartRows {
  std::shared_ptr<const Table> table;
  std::vector<int64_t> rows;
};

struct LearntTable {
  std::shared_ptr<const TableEncoder> encoder;
  PartRows train, test;
};

using TablePtr = std::shared_ptr<const Table>;

// `other` is the table for tests, or null.
LearntTable learn_tables(const TableRequest& request, const TablePtr& table,
                         const TablePtr& other) {
  TableOptions own = request.options;
  if (request.learnt) own.target = request.learnt->target();
  const auto encoder_for = [&](const std::vector<int64_t>& rows) {
    return request.learnt ? request.learnt
                          : std::make_shared<const TableEncoder>(*table, rows, own);
  };
  std::vector<int64_t> rows = rows_with_target(*table, own.target);
  if (other) {
    const auto encoder = encoder_for(rows);
    std::vector<int64_t> tests = rows_with_target(*other, encoder->target());
    return {encoder, {table, std::move(rows)}, {other, std::move(tests)}};
  }
  SplitSamples parts = split_samples(static_cast<int64_t>(rows.size()), request.test_fraction,
                                     request.seed, classes_in(*table, own, rows));
  for (std::vector<int64_t>* part : {&parts.train, &parts.test})
    for (int64_t& row : *part) row = rows[row];
  const auto encoder = encoder_for(parts.train);
  return {encoder, {table, std::move(parts.train)}, {table, std::move(parts.test)}};
}

LearntTable learn_table(const TableRequest& request) {
  const CsvOptions csv = {.decimal_comma = request.options.decimal_comma};
  const auto table = std::make_shared<const Table>(read_csv(request.train, csv));
  warn_of_mixed_columns(*table);
  const auto other =
      request.test.empty() ? nullptr : std::make_shared<const Table>(read_csv(request.test, csv));
  return learn_tables(request, table, other);
}

struct EncodedTable {
  std::shared_ptr<const TableEncoder> encoder;
  TableEncoder::Tensors train, test;
};

EncodedTable encode_table(const LearntTable& learnt) {
  const auto& [encoder, train, test] = learnt;
  return {encoder, encoder->encode_rows(*train.table, train.rows),
          encoder->encode_rows(*test.table, test.rows)};
}

std::vector<fs::path> files_of(const TableRequest& request) {
  std::vector<fs::path> files = matching_files(request.train);
  if (request.test.empty()) return files;
  for (const fs::path& file : matching_files(request.test)) files.push_back(file);
  return files;
}

// Hashes eight bytes at a time, so that each byte affects all bits, then the rest.
uint64_t hash_words(std::string_view text) {
  constexpr size_t kWord = sizeof(uint64_t);
  uint64_t hash = text.size();
  for (; text.size() >= kWord; text.remove_prefix(kWord)) {
    uint64_t word = 0;
    std::memcpy(&word, text.data(), kWord);
    hash = std::rotl((hash ^ word) * 0x9fb21c651e98df25ull, 29);
  }
  return mix_key({hash, hash_name(text)});
}

uint64_t hash_content(ThreadPool& pool, std::string_view text) {
  constexpr uint64_t kPiece = 4 << 20;
  std::vector<uint64_t> pieces((text.size() + kPiece - 1) / kPiece);
  pool.run(std::ssize(pieces), [&](int64_t i) {
    pieces[i] = hash_words(text.substr(static_cast<uint64_t>(i) * kPiece, kPiece));
  });
  uint64_t hash = text.size();
  for (const uint64_t piece : pieces) hash = mix_key({hash, piece});
  return hash;
}

// A digest of everything that determines the result: the content of the files, and the options.
uint64_t key_of(ThreadPool& pool, const TableRequest& request) {
  const TableOptions& options = request.options;
  uint64_t key = mix_key(
      {kKeptVersion, std::bit_cast<uint64_t>(request.test_fraction), request.seed,
       matching_files(request.train).size(), options.scale_target, options.decimal_comma,
       static_cast<uint64_t>(options.task),
       hash_name(fmt::format("{} / {} / {}", options.target, options.ignore, options.categorical)),
       hash_name(request.learnt ? request.learnt->text() : "")});
  for (const fs::path& path : files_of(request))
    key = mix_key({key, hash_content(pool, map_file(path).text())});
  return key;
}

// An array in an NPY file that threads write concurrently. It is not synced, because a first load
// would have to wait for that; a checksum detects an incomplete file.
class KeptArray {
 public:
  KeptArray(const fs::path& path, DType type, const Shape& shape)
      : path_(path), file_(std::fopen(path.c_str(), "wb"), std::fclose) {
    const std::string header = npy_header(type, shape);
    check(file_ != nullptr);
    write(0, std::as_bytes(std::span(header)));
    begin_ = header.size();
  }

  // Writes bytes at the offset `place` within the elements.
  void write(size_t place, std::span<const std::byte> bytes) {
    for (size_t done = 0; done < bytes.size();) {
      const ssize_t written =
          ::pwrite(fileno(file_.get()), bytes.data() + done, bytes.size() - done,
                   static_cast<off_t>(begin_ + place + done));
      check(written > 0);
      done += static_cast<size_t>(written);
    }
  }

 private:
  void check(bool done) const {
    require(done, ErrorKind::io, "[{}] cannot be written: {}", path_.string(),
            std::strerror(errno));
  }

  fs::path path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
  size_t begin_ = 0;
};

// The files of a part of a kept table.
struct KeptPart {
  fs::path inputs, targets;
  KeptPart(const fs::path& folder, const std::string& part)
      : inputs(folder / (part + "_inputs.npy")), targets(folder / (part + "_targets.npy")) {}

  void write(const TableEncoder& encoder, const PartRows& part) const {
    const auto width = static_cast<size_t>(encoder.width()) * sizeof(float);
    KeptArray array(inputs, DType::f32, {std::ssize(part.rows), encoder.width()});
    encoder.encode_pieces(*part.table, part.rows, [&](int64_t first, std::span<const float> piece) {
      array.write(static_cast<size_t>(first) * width, std::as_bytes(piece));
    });
    const Tensor all = encoder.targets_of(*part.table, part.rows);
    KeptArray(targets, all.dtype(), all.shape()).write(0, {all.raw(), all.bytes()});
  }
  TableEncoder::Tensors read() const { return {read_npy(inputs), read_npy(targets)}; }
};

struct KeptTable {
  fs::path encoder, checksum;
  KeptPart train, test;
  explicit KeptTable(const fs::path& folder)
      : encoder(folder / "table.json"),
        checksum(folder / "checksum"),
        train(folder, "train"),
        test(folder, "test") {}

  // The content of the file `checksum`.
  std::string checksum_now(ThreadPool& pool) const {
    uint64_t hash = 0;
    for (const fs::path& file : {encoder, train.inputs, train.targets, test.inputs, test.targets})
      hash = mix_key({hash, hash_content(pool, map_file(file).text())});
    return fmt::format("{:016x}\n", hash);
  }
  EncodedTable read() const { return {TableEncoder::load(encoder), train.read(), test.read()}; }
};

void keep(ThreadPool& pool, const LearntTable& table, const fs::path& folder) {
  const fs::path unfinished = folder.string() + ".unfinished";
  fs::remove_all(unfinished);
  fs::create_directories(unfinished);
  try {
    const KeptTable kept(unfinished);
    kept.train.write(*table.encoder, table.train);
    kept.test.write(*table.encoder, table.test);
    table.encoder->save(kept.encoder);
    write_file_atomically(kept.checksum, kept.checksum_now(pool));
    fs::remove_all(folder);
    fs::rename(unfinished, folder);
  } catch (...) {
    std::error_code ignored;
    fs::remove_all(unfinished, ignored);
    throw;
  }
}

// None if there is none, or if it is not whole, for example after the machine has crashed.
std::optional<EncodedTable> kept_table(ThreadPool& pool, const fs::path& folder) {
  if (!fs::exists(folder)) return std::nullopt;
  try {
    const KeptTable kept(folder);
    if (read_file(kept.checksum, 64) != kept.checksum_now(pool)) return std::nullopt;
    fs::last_write_time(folder, fs::file_time_type::clock::now());
    return kept.read();
  } catch (const std::exception& error) {
    log(LogLevel::warning, "[{}] cannot be used: {}; the table is parsed again", folder.string(),
        error.what());
    return std::nullopt;
  }
}

// Parses the table if no process has done so before.
EncodedTable encode_once(const TableRequest& request) {
  ThreadPool pool(all_cores());
  const fs::path folder = data_folder() / "tables";
  const fs::path kept = folder / fmt::format("{:016x}", key_of(pool, request));
  if (auto table = kept_table(pool, kept)) return *std::move(table);
  std::error_code problem;
  fs::create_directories(folder, problem);
  require(!problem, ErrorKind::io, "[{}] cannot make a folder for tables: {}", folder.string(),
          problem.message());
  const FileLock lock(kept.string() + ".lock");
  if (auto table = kept_table(pool, kept)) return *std::move(table);
  const uint64_t most = most_bytes_of_tables(folder);
  log(LogLevel::info, "{}: parsing the table once, into {}", request.train.string(), kept.string());
  const LearntTable table = learn_table(request);
  try {
    keep(pool, table, kept);
    forget_tables(folder, kept, most);
    return KeptTable(kept).read();  // all processes share its memory
  } catch (const std::exception& error) {
    log(LogLevel::warning,
        "cannot cache the samples of {}: {}; set ARTEL_DATA to a folder with free space",
        request.train.string(), error.what());
  }
  return encode_table(table);
}

}  // namespace

Split csv(const fs::path& train, const fs::path& test, double test_fraction, uint64_t seed,
          const TableOptions& options, const std::shared_ptr<const TableEncoder>& learnt) {
  const TableRequest request = {train, test, test_fraction, seed, options, learnt};
  uint64_t bytes = 0;
  for (const fs::path& file : files_of(request)) {
    std::error_code none;  // errors are reported when the file is opened
    const uint64_t size = fs::file_size(file, none);
    if (!none) bytes += size;
  }
  const EncodedTable table =
      bytes < kKeptFrom ? encode_table(learn_table(request)) : encode_once(request);
  return {table.encoder->dataset(table.train), table.encoder->dataset(table.test)};
}

Split table_split(const TablePtr& train, const TablePtr& test, double test_fraction, uint64_t seed,
                  const TableOptions& options, const std::shared_ptr<const TableEncoder>& learnt) {
  const fs::path none;
  const EncodedTable table =
      encode_table(learn_tables({none, none, test_fraction, seed, options, learnt}, train, test));
  return {table.encoder->dataset(table.train), table.encoder->dataset(table.test)};
}

}  // namespace artel::data
