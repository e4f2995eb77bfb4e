// Reads samples of the kind that a run was trained on, batch by batch.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "artel/run/folder/saved_run.h"

namespace artel {

struct SampleBatch {
  Tensor inputs;
  std::vector<std::string> names = {};  // of the rows; empty if they are only numbered
  int64_t first = 0;                    // index of the first row in its file
  double share = 0;                     // share of the files read so far; 0 if unknown
};

// A streaming reader of a file of any size.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // The next batch; empty at the end.
  virtual std::optional<SampleBatch> next() = 0;
  // Skips a batch, cheaply if possible. Returns false at the end.
  virtual bool skip() { return next().has_value(); }
};

// True if the file is a single picture, so that several can be read together.
bool is_one_picture(const std::string& path, const SavedRun& run);

// Opens a file of the kind of the run's data: a table with the training columns in any order (the
// target may be absent), libsvm, texts (one per line, or in columns of a .csv or .tsv), a folder of
// pictures, or an NPY, NPZ, or idx file; or several pictures. The path "-" is standard input, for
// texts.
std::unique_ptr<SampleReader> open_samples(const std::vector<std::string>& paths,
                                           const SavedRun& run);

}  // namespace artel
