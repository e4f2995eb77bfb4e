// Predictions for the samples of files, made by all workers of a cluster.
#pragma once

#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "artel/base/file.h"
#include "artel/cluster/cluster.h"
#include "artel/run/samples/predictions.h"

namespace artel::cli {

// Standard output, or a file that is there as soon as it is complete. Throws if the bytes cannot be
// written.
class PredictionOutput {
 public:
  // "" is standard output. A pipe or other special file is written directly.
  explicit PredictionOutput(const std::string& path);
  void write(std::string_view text);
  void finish();

 private:
  std::unique_ptr<AtomicFile> file_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> stream_;
};

// Collective. Worker i computes every batch whose number is i modulo the number of workers, so all
// workers must be able to read the files. Worker 0 passes the lines of all batches in order to
// `write`, with the share of each file that has been read. The lines are the same on any number of
// workers.
void share_predictions(const SavedRun& run, const std::vector<std::string>& files,
                       PredictionLines& lines, Cluster& cluster,
                       const std::function<void(std::string_view)>& write,
                       const std::function<void(const std::string& file, double share)>& progress);

}  // namespace artel::cli
