// Compares this worker's part of a fit with that of the others: configuration, samples, and files.
// Internal to train.
#pragma once

#include "artel/data/dataset.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/loop/data_check.h"
#include "artel/train/trainer_state.h"

namespace artel {

class Introduction {
 public:
  // Borrows everything. `asked`: the configured strategy options; those of the state may be changed
  // for the present number of workers.
  Introduction(TrainerState& state, const FitOptions& options, const StrategyOptions& asked,
               const data::Dataset& set)
      : s_(state), options_(options), asked_(asked), set_(set), files_(options.files) {}

  // Waits until this worker has read its files.
  void wait_for_files() const { files_.wait(); }
  // True if newcomers can be compared with this worker.
  bool can_compare() const { return files_.knows(); }
  // Sets the facts that newcomers must share with this worker.
  void publish();
  // Collective, before the first step of a membership. Throws if the workers differ.
  void compare(comm::Group& group);
  // Collective. Compares files that some worker was still reading before; no effect afterwards.
  void compare_files();
  // Collective, before the result of the run counts. Waits until all workers have read their files
  // and compares them. A run that is stopped by a signal does not wait.
  void finish_comparing_files();

 private:
  Facts facts() const;
  bool may_compare_files() const;

  TrainerState& s_;
  const FitOptions& options_;
  const StrategyOptions& asked_;
  const data::Dataset& set_;
  DataCheck files_;
};

}  // namespace artel
