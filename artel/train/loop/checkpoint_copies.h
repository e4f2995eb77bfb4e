// Copies checkpoints to other machines when each worker has only a part of the state. Worker 0
// sends the files it has written, on a separate group and thread, so training continues. Internal
// to train.
#pragma once

#include <filesystem>

#include "artel/checkpoint/checkpoint.h"
#include "artel/comm/group.h"

namespace artel {

class CheckpointCopies {
 public:
  // Collective among `all`. `keeps` is true on workers that keep a copy.
  CheckpointCopies(comm::Group& all, bool keeps);

  // Call on worker 0 after each save. Sends the files of a checkpoint; an empty path sends nothing.
  void send(const std::filesystem::path& checkpoint);
  // Call on workers that keep a copy, once for each `send`. Writes the copy to this folder of
  // checkpoints. A failing disk causes a warning and does not end the run.
  void receive(const std::filesystem::path& folder, const checkpoint::SaveOptions& options);

 private:
  comm::Group group_;  // worker 0 and the workers that keep copies
};

}  // namespace artel
