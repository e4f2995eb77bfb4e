// Saves the checkpoints of a fit, and copies them to other machines. Internal to train.
#pragma once

#include <filesystem>
#include <future>
#include <memory>
#include <optional>
#include <string>

#include "artel/base/error.h"
#include "artel/train/loop/checkpoint_copies.h"
#include "artel/train/strategy.h"
#include "artel/train/trainer_state.h"

namespace artel {

class DividedStateTransfer;

// Writes the state while the next step computes. That step waits for the writer (`finish`) before
// it hands on its last sums, so no worker finishes it or changes its state before the checkpoint
// exists. Worker 0 writes. Where state is divided, the others send it their parts.
//
// A failed save does not end the fit: it is logged and retried with the next checkpoint. Only the
// last one must succeed (`check`).
class Saver {
 public:
  // `result` belongs to the fit; failures are logged while `stopped_by` is empty.
  Saver(TrainerState& state, const FitOptions& options, const FitResult& result);

  // The folder of checkpoints on worker 0; empty if nothing is saved.
  const std::filesystem::path& folder() const { return folder_; }
  // The identity of the run in that folder.
  const std::string& identity() const { return identity_; }
  void set_folder(std::filesystem::path folder, std::string identity) {
    folder_ = std::move(folder);
    identity_ = std::move(identity);
  }

  // Collective, at the beginning of a membership. The first worker of each further machine keeps a
  // copy, unless worker 0's folder is on a shared file system.
  void choose_copies(comm::Group& group, bool divided);
  // At the end of a membership.
  void end_copies();

  // True if `begin` writes on this worker.
  bool writes(Strategy& strategy, bool best) const;
  // Begins to save the present state. All workers call it after the strategy has settled.
  void begin(Strategy& strategy, bool best);
  // Waits until the state may change.
  void finish();
  void finish_copying();

  // The checkpoint of the present step exists, or is out of date.
  void mark_saved() { saved_step_ = s_.step; }
  void mark_unsaved() { saved_step_ = -1; }
  // The present step has the best checkpoint of this fit.
  bool is_best() const { return best_step_ == s_.step; }
  // Another worker saves now.
  void forget_error() { error_.reset(); }
  // Throws if the last save failed.
  void check() const;

 private:
  bool prepare(Strategy& strategy);
  void copy(Strategy& strategy, bool best);
  std::filesystem::path write(checkpoint::Snapshot snapshot, bool best,
                              DividedStateTransfer* divided) const;
  void send_copies(const std::filesystem::path& checkpoint);
  void note_error(const Error& error);

  TrainerState& s_;
  const FitOptions& options_;
  const FitResult& result_;
  std::filesystem::path folder_;
  std::string identity_;
  int64_t saved_step_ = -1, best_step_ = -1;
  std::optional<Error> error_;  // of the last save
  bool keeps_copy_ = false;     // of each checkpoint, on its own machine
  std::future<void> saving_;
  // Where each worker has only a part of the state: sends the last checkpoint to other machines,
  // until the next one is saved.
  std::unique_ptr<CheckpointCopies> copies_;
  std::future<void> copying_;
};

}  // namespace artel
