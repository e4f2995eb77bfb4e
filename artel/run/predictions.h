// Predictions for samples in files: tables, sparse rows, texts, pictures, arrays.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artel/run/saved_run.h"

namespace artel {

struct SampleBatch {
  Tensor inputs;
  std::vector<std::string> names = {};  // of the rows; none: they have numbers
  int64_t first = 0;                    // the number of the first row in its file, from 0
};

// The samples of a file, batch by batch, so that it may be of any size.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // Nothing at the end.
  virtual std::optional<SampleBatch> next() = 0;
};

// A file of the kind of data that the run was trained on: a table with the columns of the training
// data (in any order; the target may be absent), libsvm, a text on each line, a picture, a folder
// of pictures, or an NPY array. `path` "-" stands for standard input, for texts.
std::unique_ptr<SampleReader> open_samples(const std::string& path, const SavedRun& run);

enum class PredictionFormat { text, csv, json };

struct PredictionOptions {
  PredictionFormat format = PredictionFormat::text;
  int64_t top = 0;   // classes for each sample
  bool raw = false;  // the network's outputs as they are
};

// Writes a line for each prediction: in text and JSON with the name of the sample, in CSV below a
// header. Throws an Error of kind io if that fails.
class PredictionWriter {
 public:
  // Borrows the layout and the stream.
  PredictionWriter(const data::SampleLayout& layout, const PredictionOptions& options,
                   std::FILE* stream);
  // `source` names the file.
  void write(const std::string& source, const SampleBatch& batch, const Tensor& output);
  void flush();

 private:
  std::string name_of(const std::string& source, const SampleBatch& batch, int64_t row,
                      int64_t rows) const;
  void write_header(int64_t columns);
  void write_row(const std::string& name, std::span<const float> scores);
  void write_classes(const std::string& name, std::span<const float> scores);
  void write_values(const std::string& name, std::span<const float> scores);

  const data::SampleLayout& layout_;
  PredictionOptions options_;
  std::FILE* stream_;
  std::string text_;
  bool begun_ = false;
};

}  // namespace artel
