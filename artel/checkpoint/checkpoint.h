// A run's folder of checkpoints.
//
// - folder/step-000000120/model.safetensors: weights
// - folder/step-000000120/optimizer.safetensors: state of the optimizer
// - folder/step-000000120/checkpoint.json: step, state of the run, size and CRC-32 of each file
// - folder/best: the name of the best checkpoint, if one was marked
//
// A checkpoint is written under a temporary name, synced, and renamed. After a crash it is either
// complete or absent. One process at a time may save to a folder.
//
//   artel::checkpoint::save_checkpoint("checkpoints", trainer.checkpoint());
//   if (const auto newest = artel::checkpoint::load_newest("checkpoints"))
//     trainer.restore(newest->checkpoint);
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
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
  std::string state = "{}";  // a JSON object owned by the trainer: sampler position, seeds
};

// A checkpoint whose tensors are delivered piece by piece while it is written.
struct Snapshot {
  int64_t step = 0;
  std::vector<TensorSource> weights;
  std::vector<TensorSource> optimizer;
  std::string state = "{}";
};

struct SaveOptions {
  int keep_last = 3;  // removes older ones, except the best; 0 keeps all
  bool best = false;  // marks this checkpoint as the best
};

// Returns the folder of the new checkpoint. Replaces a checkpoint of the same step. Throws an Error
// of kind io if it cannot be written, leaving no partial files and all other checkpoints intact.
std::filesystem::path save_checkpoint(const std::filesystem::path& folder, const Snapshot& snapshot,
                                      const SaveOptions& options = {});
std::filesystem::path save_checkpoint(const std::filesystem::path& folder,
                                      const Checkpoint& checkpoint,
                                      const SaveOptions& options = {});

// The same for files that `write` puts into an empty folder, such as a copy from another machine.
std::filesystem::path save_files(const std::filesystem::path& folder, int64_t step,
                                 const std::function<void(const std::filesystem::path&)>& write,
                                 const SaveOptions& options = {});

// Cleans up after an interrupted save: removes partial files and restores a checkpoint that was
// being replaced. Only the process that saves to the folder may call it. `save_checkpoint` includes
// it.
void sweep(const std::filesystem::path& folder);

// The checkpoints in a folder, oldest first. Opens no file.
std::vector<std::filesystem::path> list_checkpoints(const std::filesystem::path& folder);

// The step in the name of a checkpoint folder; empty for other names.
std::optional<int64_t> step_of(const std::filesystem::path& path);

// Verifies sizes and checksums and maps the files. Throws an Error of kind corrupt or not_found
// with the reason: incomplete, truncated, changed, or not a checkpoint of Artel.
Checkpoint load_checkpoint(const std::filesystem::path& checkpoint);

struct Newest {
  Checkpoint checkpoint;
  std::filesystem::path path;
  std::vector<std::string> refused;  // newer but unusable checkpoints, with reasons
};

// The newest usable checkpoint; empty if the folder has no checkpoints. If it has some but none is
// usable, throws an Error of kind corrupt that lists the reasons.
std::optional<Newest> load_newest(const std::filesystem::path& folder);

// The checkpoint in a folder: the folder itself if it is a checkpoint, otherwise the newest usable
// one in it or in its subfolder `checkpoints`, as in a run folder. Logs newer unusable ones. Throws
// if no checkpoint is usable.
Checkpoint checkpoint_at(const std::filesystem::path& folder);

// The folder of the best checkpoint, if one was marked and still exists.
std::optional<std::filesystem::path> best_checkpoint(const std::filesystem::path& folder);

}  // namespace artel::checkpoint
