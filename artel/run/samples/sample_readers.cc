#include "artel/run/samples/sample_readers.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <utility>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/data/images/image_folder.h"
#include "artel/data/sets.h"
#include "artel/data/tables/csv_pieces.h"
#include "artel/data/tables/libsvm.h"
#include "artel/data/tables/parquet.h"
#include "artel/data/tables/table_encoder.h"
#include "artel/run/samples/samples.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRows = 8192;  // rows of a table per batch
constexpr int64_t kTexts = 64;
constexpr int64_t kPictures = 64;

// As many samples as take a few megabytes.
int64_t rows_in_batch(const data::SampleLayout& layout) {
  constexpr int64_t kBytes = 16 << 20;
  return std::clamp<int64_t>(kBytes / std::max<int64_t>(1, layout.input.elements() * 4), 1, kRows);
}

double share_of(int64_t done, int64_t all) {
  return static_cast<double>(done) / static_cast<double>(std::max<int64_t>(1, all));
}

Tensor joined(const std::vector<Tensor>& rows) {
  std::vector<int64_t> extents = rows.front().shape().extents();
  extents[0] = static_cast<int64_t>(rows.size());
  Tensor all(Shape(extents), rows.front().dtype());
  std::byte* to = all.raw();
  for (const Tensor& row : rows) {
    std::memcpy(to, row.raw(), row.bytes());
    to += row.bytes();
  }
  return all;
}

// Throws for a picture, which would otherwise be read as a table with strange columns.
Bytes map_rows(const std::string& path) {
  Bytes bytes = data::map_table(path);
  const std::string_view text = bytes.text();
  require(!text.starts_with("\x89PNG") && !text.starts_with("\xff\xd8\xff"), ErrorKind::corrupt,
          "[{}] is a picture, but the network was trained on a table; expected a CSV file", path);
  return bytes;
}

// Pieces of the file are read and encoded side by side, a few at a time.
class TableRows final : public SampleReader {
 public:
  TableRows(const std::string& path, const SavedRun& run, int threads)
      : TableRows(path, *run.layout.table, {.decimal_comma = run.config.data.decimal_comma},
                  threads) {}

  TableRows(const std::string& path, const data::TableEncoder& encoder,
            const data::CsvOptions& options, int threads)
      : path_(path),
        reader_(map_rows(path), options),
        rows_(encoder, reader_.columns(), path),
        width_(encoder.width()),
        pool_(threads) {
    constexpr size_t kPiece = 1 << 20;
    pieces_ = data::cut_pieces(pool_, reader_, kPiece);
  }

  std::optional<SampleBatch> next() override {
    while (ready() < kRows && at_ < pieces_.size()) read_more();
    const int64_t count = std::min(kRows, ready());
    if (count == 0) {
      for (const std::string& warning : std::exchange(unseen_, {}).warnings())
        log(LogLevel::warning, "[{}] {}", path_, warning);
      return {};
    }
    SampleBatch batch{.inputs = Tensor({count, width_}), .first = first_, .share = share()};
    const auto begin = values_.begin() + static_cast<std::ptrdiff_t>(used_);
    std::copy_n(begin, count * width_, batch.inputs.values<float>().begin());
    used_ += static_cast<size_t>(count * width_);
    first_ += count;
    return batch;
  }

 private:
  struct Encoded {
    std::vector<float> values;
    int64_t rows = 0;
    size_t end = 0;  // where its last record ended
    data::UnseenNames unseen;
    std::exception_ptr error;
  };

  double share() const {
    return at_ == pieces_.size() ? 1
                                 : static_cast<double>(pieces_[at_].begin) /
                                       static_cast<double>(reader_.text().size());
  }

  int64_t ready() const {
    return kept_rows_ - static_cast<int64_t>(used_) / std::max<int64_t>(1, width_);
  }

  Encoded encode(const data::CsvPiece& piece) const {
    Encoded result;
    data::CsvReader reader = reader_.part(piece.begin, piece.end, piece.line);
    std::vector<std::string_view> fields;
    try {
      for (; reader.next(fields); ++result.rows) {
        result.values.resize(result.values.size() + static_cast<size_t>(width_));
        rows_.encode(fields, reader.line(),
                     result.values.data() + result.values.size() - static_cast<size_t>(width_),
                     result.unseen);
      }
    } catch (...) {
      result.error = std::current_exception();
    }
    result.end = reader.place();
    return result;
  }

  void read_more() {
    const size_t count = std::min(pieces_.size() - at_, static_cast<size_t>(2 * pool_.threads()));
    std::vector<Encoded> parts(count);
    pool_.run(static_cast<int64_t>(count),
              [&](int64_t i) { parts[i] = encode(pieces_[at_ + static_cast<size_t>(i)]); });
    values_.erase(values_.begin(), values_.begin() + static_cast<std::ptrdiff_t>(used_));
    kept_rows_ = ready();
    used_ = 0;
    for (size_t i = 0; i < count; ++i) {
      Encoded& part = parts[i];
      const data::CsvPiece piece = pieces_[at_];
      if ((part.error || part.end != piece.end) && at_ + 1 < pieces_.size()) {
        // The piece does not end at a record, so the rest is one piece.
        pieces_.resize(at_ + 1);
        pieces_[at_].end = reader_.text().size();
        part = encode(pieces_[at_]);
      }
      ++at_;
      values_.insert(values_.end(), part.values.begin(), part.values.end());
      kept_rows_ += part.rows;
      unseen_.add(part.unseen);
      if (part.error) std::rethrow_exception(part.error);
      if (at_ == pieces_.size()) return;
    }
  }

  std::string path_;
  data::CsvReader reader_;
  data::TableEncoder::Rows rows_;
  data::UnseenNames unseen_;
  int64_t width_, first_ = 0;
  ThreadPool pool_;
  std::vector<data::CsvPiece> pieces_;
  size_t at_ = 0;              // the next of them
  std::vector<float> values_;  // of rows that are encoded
  size_t used_ = 0;            // of these values
  int64_t kept_rows_ = 0;      // that values_ holds
};

// Samples with numbers from 0 to `size`.
class CountedSamples : public SampleReader {
 public:
  std::optional<SampleBatch> next() final {
    const int64_t first = first_, count = std::min(size_ - first_, batch_);
    if (count == 0) return {};
    first_ += count;
    SampleBatch batch = read(first, count);
    batch.first = first;
    batch.share = share_of(first_, size_);
    return batch;
  }

  bool skip() final {
    const int64_t count = std::min(size_ - first_, batch_);
    first_ += count;
    return count > 0;
  }

 protected:
  CountedSamples(int64_t size, int64_t batch) : size_(size), batch_(batch) {}
  virtual SampleBatch read(int64_t first, int64_t count) const = 0;

 private:
  int64_t size_, batch_, first_ = 0;
};

class SparseSamples final : public CountedSamples {
 public:
  SparseSamples(data::SparseFile file, const data::SampleLayout& layout)
      : CountedSamples(file.size(), rows_in_batch(layout)),
        file_(std::move(file)),
        features_(layout.input.elements()) {}

  static std::unique_ptr<SparseSamples> open(const std::string& path,
                                             const data::SampleLayout& layout) {
    data::SparseFile file(map_file(path));
    file.count_from(std::min(file.first_index(), layout.first_index));
    require(file.features() <= layout.input.elements(), ErrorKind::shape,
            "[{}] has {}, but the network was trained with {}", path,
            counted(file.features(), "feature"), layout.input.elements());
    return std::make_unique<SparseSamples>(std::move(file), layout);
  }

 private:
  SampleBatch read(int64_t first, int64_t count) const override {
    SampleBatch batch{.inputs = Tensor({count, features_})};
    float* values = batch.inputs.values<float>().data();
    data::SparseSample sample;
    for (int64_t i = 0; i < count; ++i, values += features_) {
      file_.read(first + i, sample);
      for (size_t k = 0; k < sample.features.size(); ++k)
        values[sample.features[k]] = sample.values[k];
    }
    return batch;
  }

  data::SparseFile file_;
  int64_t features_;
};

// The rows of an NPY, NPZ or idx file.
class ArrayRows final : public CountedSamples {
 public:
  ArrayRows(data::DatasetPtr rows, const SavedRun& run)
      : CountedSamples(rows->size(), rows_in_batch(run.layout)),
        rows_(std::move(rows)),
        augment_(run.augment) {}

 private:
  SampleBatch read(int64_t first, int64_t count) const override {
    return {.inputs = read_rows(*rows_, first, count, augment_)};
  }

  data::DatasetPtr rows_;
  const data::Augmentation& augment_;
};

// A warning names each picture that cannot be decoded and is left out, if `skips_broken`.
class Pictures final : public CountedSamples {
 public:
  Pictures(std::vector<std::string> files, const SavedRun& run, int threads,
           bool skips_broken = false)
      : CountedSamples(static_cast<int64_t>(files.size()),
                       std::min(kPictures, rows_in_batch(run.layout))),
        files_(std::move(files)),
        run_(run),
        skips_broken_(skips_broken),
        pool_(threads) {}

 private:
  SampleBatch read(int64_t first, int64_t count) const override {
    std::vector<std::optional<Tensor>> decoded(static_cast<size_t>(count));
    std::vector<std::string> problems(static_cast<size_t>(count));
    pool_.run(count, [&](int64_t i) {
      try {
        decoded[i] = read_samples(files_[first + i], run_.layout, run_.augment);
      } catch (const Error& error) {
        if (!skips_broken_) throw;
        problems[i] = error.what();
      }
    });
    std::vector<Tensor> rows;
    SampleBatch batch;
    for (int64_t i = 0; i < count; ++i) {
      if (!decoded[i]) {
        log(LogLevel::warning, "{}; skipped", problems[i]);
        continue;
      }
      rows.push_back(std::move(*decoded[i]));
      batch.names.push_back(files_[first + i]);
    }
    if (!rows.empty()) batch.inputs = joined(rows);
    return batch;
  }

  std::vector<std::string> files_;
  const SavedRun& run_;
  bool skips_broken_;
  mutable ThreadPool pool_;
};

// One on each line; the two texts of a pair are divided by a tab.
class TextLines final : public SampleReader {
 public:
  TextLines(const std::string& path, const data::SampleLayout& layout) : layout_(layout) {
    if (path == "-") return;
    file_.open(path);
    require(file_.is_open(), ErrorKind::not_found, "[{}] cannot open: {}", path,
            std::strerror(errno));
    size_ = static_cast<int64_t>(fs::file_size(path));
  }

  std::optional<SampleBatch> next() override {
    std::vector<Tensor> rows;
    SampleBatch batch{.inputs = {}, .first = first_};
    for (std::string line; std::ssize(rows) < kTexts && std::getline(stream(), line);) {
      read_ += std::ssize(line) + 1;
      if (line.ends_with('\r')) line.pop_back();
      const bool pairs = layout_.input.rank() == 2;
      const size_t tab = pairs ? line.find('\t') : line.npos;
      std::optional<std::string> second;
      if (tab != line.npos) second = line.substr(tab + 1);
      rows.push_back(text_sample(line.substr(0, tab), second, layout_));
      batch.names.push_back(std::move(line));
    }
    if (rows.empty()) return {};
    first_ += std::ssize(rows);
    if (size_ > 0) batch.share = std::min(1.0, share_of(read_, size_));
    batch.inputs = joined(rows);
    return batch;
  }

  bool skip() override {
    int64_t lines = 0;
    for (std::string line; lines < kTexts && std::getline(stream(), line); ++lines)
      read_ += std::ssize(line) + 1;
    first_ += lines;
    return lines > 0;
  }

 private:
  std::istream& stream() { return file_.is_open() ? file_ : std::cin; }

  const data::SampleLayout& layout_;
  std::ifstream file_;
  int64_t size_ = 0, read_ = 0, first_ = 0;
};

// A table as training takes it, whose classes may be absent.
class TextColumns final : public SampleReader {
 public:
  TextColumns(const std::string& path, const SavedRun& run)
      : reader_(data::map_table(path)), layout_(run.layout) {
    const std::vector<std::string>& names = reader_.columns();
    const std::string& target = run.config.data.target;
    const size_t texts = layout_.input.rank() == 2 ? 2 : 1;
    const auto named = [](const std::vector<std::string>& list, const std::string& name) {
      return std::find(list.begin(), list.end(), name) != list.end();
    };
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] != target && !named(run.config.data.ignore, names[i])) columns_.push_back(i);
    // Without a name, the last column is the class.
    if (target.empty() && columns_.size() == texts + 1) columns_.pop_back();
    require(columns_.size() == texts, ErrorKind::invalid_argument, "[{}] got {}, expected {}{}",
            path, counted(std::ssize(columns_), "column"), texts == 1 ? "a text" : "two texts",
            target.empty() ? ", with or without the class behind"
                           : fmt::format(", with or without the class in '{}'", target));
  }

  std::optional<SampleBatch> next() override {
    std::vector<Tensor> rows;
    SampleBatch batch{.inputs = {}, .first = first_};
    for (std::vector<std::string_view> fields; std::ssize(rows) < kTexts && reader_.next(fields);) {
      std::string name(fields[columns_[0]]);
      std::optional<std::string> second;
      if (columns_.size() == 2) second = std::string(fields[columns_[1]]);
      rows.push_back(text_sample(name, second, layout_));
      if (second) name += " | " + *second;
      batch.names.push_back(std::move(name));
    }
    if (rows.empty()) return {};
    first_ += std::ssize(rows);
    batch.share = share_of(static_cast<int64_t>(reader_.place()), std::ssize(reader_.text()));
    batch.inputs = joined(rows);
    return batch;
  }

 private:
  data::CsvReader reader_;
  const data::SampleLayout& layout_;
  std::vector<size_t> columns_;  // of the texts
  int64_t first_ = 0;
};

bool has_one_of(const std::string& path, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(),
                     [&](std::string_view ending) { return path.ends_with(ending); });
}

}  // namespace

bool is_one_picture(const std::string& path, const SavedRun& run) {
  return has_one_of(path, {".png", ".PNG", ".jpg", ".JPG", ".jpeg", ".JPEG"}) &&
         !run.layout.table && !run.layout.tokenizer && !data::is_sparse(run.config.data.set) &&
         !fs::is_directory(path);
}

std::unique_ptr<SampleReader> open_samples(const std::vector<std::string>& paths,
                                           const SavedRun& run) {
  const auto given = static_cast<int>(run.config.cluster.threads);
  const int threads = given > 0 ? given : run.cluster->cores();
  const std::string& path = paths.front();
  if (is_one_picture(path, run)) return std::make_unique<Pictures>(paths, run, threads);
  if (fs::is_directory(path)) {
    std::vector<std::string> pictures;
    for (const fs::path& file : data::pictures_in(path)) pictures.push_back(file.string());
    require(!pictures.empty(), ErrorKind::not_found,
            "[{}] holds no pictures, expected .jpg or .png", path);
    return std::make_unique<Pictures>(std::move(pictures), run, threads, true);
  }
  if (has_one_of(path, {".npy", ".npz"})) {
    data::DatasetPtr rows = array_samples(path, run.layout);
    require(rows != nullptr, ErrorKind::corrupt, "[{}] is neither NPY nor NPZ", path);
    return std::make_unique<ArrayRows>(std::move(rows), run);
  }
  if (run.layout.table) return std::make_unique<TableRows>(path, run, threads);
  if (data::is_sparse(run.config.data.set)) return SparseSamples::open(path, run.layout);
  if (run.layout.tokenizer && has_one_of(path, {".csv", ".tsv", ".parquet"}))
    return std::make_unique<TextColumns>(path, run);
  if (run.layout.tokenizer) return std::make_unique<TextLines>(path, run.layout);
  if (data::DatasetPtr rows = array_samples(path, run.layout))
    return std::make_unique<ArrayRows>(std::move(rows), run);
  return std::make_unique<Pictures>(paths, run, 1);
}

}  // namespace artel
