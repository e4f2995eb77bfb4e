// Formats predictions as text, CSV, or JSON lines.
#pragma once

#include <span>
#include <string>

#include "artel/run/samples/sample_readers.h"

namespace artel {

enum class PredictionFormat { text, csv, json };

struct PredictionOptions {
  PredictionFormat format = PredictionFormat::text;
  int64_t top = 0;     // number of classes per sample
  bool raw = false;    // unprocessed outputs of the network
  bool header = true;  // writes a CSV header
  // The output to show. Outputs other than "prediction" are always raw.
  std::string output = "prediction";
};

// Formats one line per prediction. Includes the name of the sample; in CSV only if samples have
// their own names.
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
  std::optional<bool> named_;  // lines have names; decided by the first batch
};

}  // namespace artel
