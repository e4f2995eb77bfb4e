// Prunes a trained run: removes whole units, or sets single weights to zero.
#pragma once

#include <string>
#include <vector>

#include "artel/run/folder/saved_run.h"
#include "artel/shrink/quality.h"

namespace artel::shrink {

struct PruneRunOptions {
  RunSource source;
  double units = 0;    // share of units removed from each layer
  double weights = 0;  // share of weights set to zero in dense layers and convolutions
  // Ranks the weights of all layers together. If false, each layer loses the same share.
  bool global = true;
  std::vector<std::string> keep = {};  // prefixes of the names of layers that are not pruned
  bool evaluate = true;                // measures `before` and `after` on the run's test data
};

struct PrunedLayer {
  std::string name;
  int64_t units_before = 0, units_after = 0;
  // The reason why no unit could be removed. Empty if units were removed or none was requested.
  std::string kept_because = {};
  int64_t weights = 0, zeros = 0;  // after pruning
};

struct PrunedRun {
  RunConfig config;  // describes the smaller network
  NamedTensors weights;
  std::vector<PrunedLayer> layers = {};
  int64_t parameters_before = 0, parameters_after = 0;
  double operations_before = 0, operations_after = 0;  // per sample
  Quality before = {}, after = {};                     // set if `evaluate`
};

// Throws if the run has adapters, if nothing can be pruned, or if a layer would lose all units.
PrunedRun prune_run(const PruneRunOptions& options);

// Writes a run that `artel evaluate`, `predict`, and other commands open. Zeros are not stored
// (predict/sparse_weights.h). `folder` must not exist.
void save_pruned(const PrunedRun& run, const RunSource& source, const std::string& folder);

// Writes the weights and a configuration for `artel train` to the new folder. By default, training
// takes `epochs` epochs at a tenth of the original learning rate; `overrides` replace any key. Zero
// weights stay zero. Returns the path of the configuration file.
std::string prepare_finetuning(const PrunedRun& run, int64_t epochs, const std::string& folder,
                               const std::vector<std::string>& overrides);
std::string finetuning_config(const std::string& folder);

}  // namespace artel::shrink
