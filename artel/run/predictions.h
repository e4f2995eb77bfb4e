// Predictions as lines of text, CSV or JSON.
#pragma once

#include <span>
#include <string>

#include "artel/run/sample_readers.h"

namespace artel {

enum class PredictionFormat { text, csv, json };

struct PredictionOptions {
  PredictionFormat format = PredictionFormat::text;
  int64_t top = 0;     // classes for each sample
  bool raw = false;    // the network's outputs as they are
  bool header = true;  // of CSV, above the first line
  // Of a network with several outputs, which one; others than this are raw.
  std::string output = "prediction";
};

// Makes a line of each prediction: with the name of the sample, in CSV only if it has one of its
// own.
class PredictionLines {
 public:
  // Borrows the layout.
  PredictionLines(const data::SampleLayout& layout, const PredictionOptions& options);
  // `source` names the file.
  std::string of(const std::string& source, const SampleBatch& batch, const Tensor& output);
  const std::string& output() const { return options_.output; }

 private:
  std::string name_of(const std::string& source, const SampleBatch& batch, int64_t row,
                      int64_t rows) const;
  void add_header(int64_t columns, bool named);
  void add_name(const std::string& name);
  void add_row(const std::string& name, std::span<const float> scores);
  void add_classes(const std::string& name, std::span<const float> scores);
  void add_values(const std::string& name, std::span<const float> scores);

  const data::SampleLayout& layout_;
  PredictionOptions options_;
  std::string text_;
  std::optional<bool> named_;  // whether lines have names, as the first batch decides
};

}  // namespace artel
