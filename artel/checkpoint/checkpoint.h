// A run's folder of checkpoints.
//
// - folder/step-000000120/model.safetensors: weights
// - folder/step-000000120/optimizer.safetensors: state of the optimizer
// - folder/step-000000120/checkpoint.json: step, state of the run, size and CRC-32 of each file
// - folder/best: the name of the best checkpoint, if there is one
//
// A checkpoint is written under a temporary name, synced and renamed: after a crash it is complete
// or absent.
//
//   artel::checkpoint::save_checkpoint("checkpoints", trainer.checkpoint());
//   if (const auto newest = artel::checkpoint::load_newest("checkpoints"))
//     trainer.restore(newest->checkpoint);
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "artel/tensor/named_tensor.h"
#include "artel/tensor/tensor_source.h"

namespace artel::checkpoint {

struct Checkpoint {
  int64_t step = 0;
  NamedTensors weights;
  NamedTensors optimizer;
  std::string state = "{}";  // a JSON object: sampler position, seeds, whatever the trainer needs
};

// A checkpoint whose tensors are given piece by piece while it is written.
struct Snapshot {
  int64_t step = 0;
  std::vector<TensorSource> weights;
  std::vector<TensorSource> optimizer;
  std::string state = "{}";
};

struct SaveOptions {
  int keep_last = 3;  // older ones are removed, but never the best; 0 keeps all
  bool best = false;  // this one is the best so far
};

// Returns the folder of the new checkpoint. Replaces a checkpoint of the same step. Throws an Error
// of kind io if it cannot be written; then nothing of it is left, and all others are still there.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const Snapshot& snapshot,
                                      const SaveOptions& options = {});
std::filesystem::path save_checkpoint(const std::filesystem::path& folder,
                                      const Checkpoint& checkpoint,
                                      const SaveOptions& options = {});

// Tidies up after a save that a crash has interrupted: removes what is half-written, and puts back
// a checkpoint that was being replaced. Only for whoever saves there; `save_checkpoint` does it,
// too.
void sweep(const std::filesystem::path& folder);

// The checkpoints in a folder, oldest first. No file is opened.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

// The step in the name of a checkpoint's folder; nothing for other names.
std::optional<int64_t> step_of(const std::filesystem::path& path);

// Maps one checkpoint after comparing sizes and checksums. Throws an Error of kind corrupt or
// not_found with the reason: incomplete, truncated, changed, or not Artel's.
Checkpoint load_checkpoint(const std::filesystem::path& checkpoint);

struct Newest {
  Checkpoint checkpoint;
  std::filesystem::path path;
  std::vector<std::string> refused;  // newer ones that could not be used, with the reason
};

// The newest complete checkpoint, or nothing if the folder has none at all. Throws an Error of kind
// corrupt that lists every reason if there are checkpoints but none can be used.
std::optional<Newest> load_newest(const std::filesystem::path& folder);

// The checkpoint that a folder refers to: itself, if it is a checkpoint, otherwise the newest
// complete one in it or in its sub-folder `checkpoints`, as in the folder of a run; the log says
// which newer ones could not be used. Throws if there is none.
Checkpoint checkpoint_at(const std::filesystem::path& folder);

// The folder of the best checkpoint, if one was marked and still exists.
std::optional<std::filesystem::path> best_checkpoint(const std::filesystem::path& folder);

}  // namespace artel::checkpoint
