// The samples of files of the kind that a run was trained on, batch by batch.
#pragma once

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
  double share = 0;                     // of the files that has been read with it; 0: unknown
};

// The samples of a file, so that it may be of any size.
class SampleReader {
 public:
  virtual ~SampleReader() = default;
  // Nothing at the end.
  virtual std::optional<SampleBatch> next() = 0;
  // Leaves a batch out, which costs less where it can be; false at the end.
  virtual bool skip() { return next().has_value(); }
};

// Whether a file holds one picture, so that several can be read together.
bool is_one_picture(const std::string& path, const SavedRun& run);

// A file of the kind of data that the run was trained on: a table with the columns of the training
// data (in any order; the target may be absent), libsvm, texts (one on each line, or in the columns
// of a .csv or .tsv), a folder of pictures, or an NPY, NPZ or idx file; or several pictures. The
// path "-" stands for standard input, for texts.
std::unique_ptr<SampleReader> open_samples(const std::vector<std::string>& paths,
                                           const SavedRun& run);

}  // namespace artel
