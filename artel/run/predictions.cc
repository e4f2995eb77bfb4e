#include "artel/run/predictions.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/data/csv_pieces.h"
#include "artel/data/image_folder.h"
#include "artel/data/libsvm.h"
#include "artel/data/sets.h"
#include "artel/data/table_encoder.h"
#include "artel/predict/class_shares.h"
#include "artel/run/samples.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kRows = 8192;  // of a table in a batch
constexpr int64_t kTexts = 64;

// Pieces of the file are read and encoded side by side, a few at a time.
class TableRows final : public SampleReader {
 public:
  TableRows(const std::string& path, const data::TableEncoder& encoder, int threads)
      : reader_(map_file(path)),
        rows_(encoder, reader_.columns(), path),
        width_(encoder.width()),
        pool_(threads) {
    constexpr size_t kPiece = 1 << 20;
    pieces_ = data::cut_pieces(pool_, reader_, kPiece);
  }

  std::optional<SampleBatch> next() override {
    while (ready() < kRows && at_ < pieces_.size()) read_more();
    const int64_t count = std::min(kRows, ready());
    if (count == 0) return {};
    SampleBatch batch{.inputs = Tensor({count, width_}), .first = first_};
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
    std::exception_ptr error;
  };

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
                     result.values.data() + result.values.size() - static_cast<size_t>(width_));
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
        // It was not cut where a record begins: the rest is one piece.
        pieces_.resize(at_ + 1);
        pieces_[at_].end = reader_.text().size();
        part = encode(pieces_[at_]);
      }
      ++at_;
      values_.insert(values_.end(), part.values.begin(), part.values.end());
      kept_rows_ += part.rows;
      if (part.error) std::rethrow_exception(part.error);
      if (at_ == pieces_.size()) return;
    }
  }

  data::CsvReader reader_;
  data::TableEncoder::Rows rows_;
  int64_t width_, first_ = 0;
  ThreadPool pool_;
  std::vector<data::CsvPiece> pieces_;
  size_t at_ = 0;              // the next of them
  std::vector<float> values_;  // of rows that are encoded
  size_t used_ = 0;            // of these values
  int64_t kept_rows_ = 0;      // that values_ holds
};

class SparseSamples final : public SampleReader {
 public:
  SparseSamples(const std::string& path, const data::SampleLayout& layout)
      : file_(map_file(path)), features_(layout.input.elements()) {
    file_.count_from(std::min(file_.first_index(), layout.first_index));
    require(file_.features() <= features_, ErrorKind::shape,
            "[{}] has {} features, but the network was trained with {}", path, file_.features(),
            features_);
  }

  std::optional<SampleBatch> next() override {
    const int64_t count = std::min<int64_t>(file_.size() - first_, kTexts);
    if (count == 0) return {};
    SampleBatch batch{.inputs = Tensor({count, features_}), .first = first_};
    float* values = batch.inputs.values<float>().data();
    data::SparseSample sample;
    for (int64_t i = 0; i < count; ++i, values += features_) {
      file_.read(first_ + i, sample);
      for (size_t k = 0; k < sample.features.size(); ++k)
        values[sample.features[k]] = sample.values[k];
    }
    first_ += count;
    return batch;
  }

 private:
  data::SparseFile file_;
  int64_t features_, first_ = 0;
};

// One on each line; the two texts of a pair are divided by a tab.
class TextLines final : public SampleReader {
 public:
  TextLines(const std::string& path, const data::SampleLayout& layout) : layout_(layout) {
    if (path == "-") return;
    file_.open(path);
    require(file_.is_open(), ErrorKind::not_found, "[{}] cannot open: {}", path,
            std::strerror(errno));
  }

  std::optional<SampleBatch> next() override {
    std::istream& stream = file_.is_open() ? file_ : std::cin;
    std::vector<Tensor> rows;
    SampleBatch batch{.inputs = {}, .names = {}, .first = first_};
    for (std::string line;
         static_cast<int64_t>(rows.size()) < kTexts && std::getline(stream, line);) {
      if (line.ends_with('\r')) line.pop_back();
      const bool pairs = layout_.input.rank() == 2;
      const size_t tab = pairs ? line.find('\t') : line.npos;
      std::optional<std::string> second;
      if (tab != line.npos) second = line.substr(tab + 1);
      rows.push_back(text_sample(line.substr(0, tab), second, layout_));
      batch.names.push_back(std::move(line));
    }
    if (rows.empty()) return {};
    first_ += static_cast<int64_t>(rows.size());
    batch.inputs = joined(rows);
    return batch;
  }

 private:
  static Tensor joined(const std::vector<Tensor>& rows) {
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

  const data::SampleLayout& layout_;
  std::ifstream file_;
  int64_t first_ = 0;
};

// Files that are read as a whole: pictures and arrays.
class WholeFiles final : public SampleReader {
 public:
  WholeFiles(std::vector<fs::path> files, const SavedRun& run, bool named)
      : files_(std::move(files)), run_(run), named_(named) {}

  std::optional<SampleBatch> next() override {
    if (at_ == files_.size()) return {};
    const fs::path& file = files_[at_++];
    SampleBatch batch{.inputs = read_samples(file, run_.layout, run_.augment)};
    if (named_) batch.names = {file.string()};
    return batch;
  }

 private:
  std::vector<fs::path> files_;
  const SavedRun& run_;
  bool named_;
  size_t at_ = 0;
};

bool is_array_file(const std::string& path) {
  return path.ends_with(".npy") || path.ends_with(".npz");
}

std::vector<size_t> largest_first(const std::vector<double>& shares, int64_t top) {
  std::vector<size_t> order(shares.size());
  std::iota(order.begin(), order.end(), size_t{0});
  const size_t shown = std::min(order.size(), static_cast<size_t>(top));
  std::partial_sort(
      order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
      [&](size_t a, size_t b) { return shares[a] != shares[b] ? shares[a] > shares[b] : a < b; });
  order.resize(shown);
  return order;
}

// As a field of CSV.
std::string quoted(const std::string& field) {
  if (field.find_first_of(",\"\n\r") == field.npos) return field;
  std::string text = "\"";
  for (const char c : field) text += c == '"' ? "\"\"" : std::string(1, c);
  return text + "\"";
}

}  // namespace

std::unique_ptr<SampleReader> open_samples(const std::string& path, const SavedRun& run) {
  if (fs::is_directory(path)) {
    std::vector<fs::path> pictures = data::pictures_in(path);
    require(!pictures.empty(), ErrorKind::not_found,
            "[{}] holds no pictures, expected .jpg or .png", path);
    return std::make_unique<WholeFiles>(std::move(pictures), run, /*named=*/true);
  }
  if (is_array_file(path))
    return std::make_unique<WholeFiles>(std::vector<fs::path>{path}, run, false);
  if (run.layout.table) {
    const auto threads = static_cast<int>(run.config.cluster.threads);
    return std::make_unique<TableRows>(path, *run.layout.table,
                                       threads > 0 ? threads : run.cluster->cores());
  }
  if (data::is_sparse(run.config.data.set))
    return std::make_unique<SparseSamples>(path, run.layout);
  if (run.layout.tokenizer) return std::make_unique<TextLines>(path, run.layout);
  return std::make_unique<WholeFiles>(std::vector<fs::path>{path}, run, false);
}

PredictionWriter::PredictionWriter(const data::SampleLayout& layout,
                                   const PredictionOptions& options, std::FILE* stream)
    : layout_(layout), options_(options), stream_(stream) {}

std::string PredictionWriter::name_of(const std::string& source, const SampleBatch& batch,
                                      int64_t row, int64_t rows) const {
  if (!batch.names.empty()) return batch.names[row];
  return rows == 1 && batch.first == 0 ? source : fmt::format("{}[{}]", source, batch.first + row);
}

void PredictionWriter::write(const std::string& source, const SampleBatch& batch,
                             const Tensor& output) {
  const int64_t rows = output.shape()[0], columns = output.elements() / rows;
  if (!std::exchange(begun_, true) && options_.format == PredictionFormat::csv)
    write_header(columns);
  const bool named = options_.format != PredictionFormat::csv;
  for (int64_t row = 0; row < rows; ++row)
    write_row(named ? name_of(source, batch, row, rows) : std::string(),
              output.values<float>().subspan(row * columns, columns));
  constexpr size_t kMostKept = 1 << 16;
  if (text_.size() > kMostKept) flush();
}

void PredictionWriter::flush() {
  const bool written = std::fwrite(text_.data(), 1, text_.size(), stream_) == text_.size() &&
                       std::fflush(stream_) == 0;
  text_.clear();
  require(written, ErrorKind::io, "[predictions] cannot be written: {}", std::strerror(errno));
}

void PredictionWriter::write_header(int64_t columns) {
  std::vector<std::string> names;
  if (options_.raw || layout_.classes == 0) {
    for (int64_t i = 0; i < columns; ++i)
      names.push_back(columns == 1 ? "prediction" : fmt::format("prediction {}", i + 1));
  } else {
    const int64_t shown = std::min(options_.top, std::max<int64_t>(2, columns));
    for (int64_t i = 1; i <= shown; ++i) {
      const std::string number = i == 1 ? "" : fmt::format(" {}", i);
      names.push_back("prediction" + number);
      names.push_back("probability" + number);
    }
  }
  text_ += join(names, ",") + '\n';
}

void PredictionWriter::write_row(const std::string& name, std::span<const float> scores) {
  if (options_.raw || layout_.classes == 0)
    write_values(name, scores);
  else
    write_classes(name, scores);
}

void PredictionWriter::write_classes(const std::string& name, std::span<const float> scores) {
  const std::vector<double> shares = class_shares(scores);
  const std::vector<size_t> order = largest_first(shares, options_.top);
  const auto label = [&](size_t i) { return class_name(layout_, static_cast<int64_t>(order[i])); };
  if (options_.format == PredictionFormat::json) {
    nlohmann::ordered_json json = {
        {"sample", name}, {"prediction", label(0)}, {"probability", shares[order[0]]}};
    for (size_t i = 0; i < order.size(); ++i)
      json["top"].push_back({{"class", label(i)}, {"probability", shares[order[i]]}});
    text_ += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
    return;
  }
  const bool csv = options_.format == PredictionFormat::csv;
  if (!csv) text_ += name + ": ";
  for (size_t i = 0; i < order.size(); ++i)
    fmt::format_to(std::back_inserter(text_), "{}{}{}{:.4f}",
                   i == 0 ? ""
                   : csv  ? ","
                          : ", ",
                   csv ? quoted(label(i)) : label(i), csv ? "," : " ", shares[order[i]]);
  text_ += '\n';
}

void PredictionWriter::write_values(const std::string& name, std::span<const float> scores) {
  const bool scaled = layout_.table && !options_.raw;
  const double offset = scaled ? layout_.table->target_offset() : 0;
  const double scale = scaled ? layout_.table->target_scale() : 1;
  std::vector<double> values;
  for (const float score : scores) values.push_back(offset + scale * score);
  if (options_.format == PredictionFormat::json) {
    nlohmann::ordered_json json = {{"sample", name}};
    if (values.size() == 1)
      json["prediction"] = values[0];
    else
      json["prediction"] = values;
    text_ += json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + '\n';
    return;
  }
  const bool csv = options_.format == PredictionFormat::csv;
  if (!csv) text_ += name + ": ";
  fmt::format_to(std::back_inserter(text_), "{:.7g}\n", fmt::join(values, csv ? "," : " "));
}

}  // namespace artel
