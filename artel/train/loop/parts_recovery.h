// Recovery of divided state: workers copy their parts to each other, and after a group breaks, they
// assemble the newest complete state from these copies and divide it again. Internal to train.
#pragma once

#include <optional>
#include <string>

#include "artel/train/parts/mirrors.h"
#include "artel/train/parts/restoration.h"
#include "artel/train/strategy.h"
#include "artel/train/trainer_state.h"

namespace artel {

class PartsRecovery {
 public:
  // `every` is the number of steps between copies.
  PartsRecovery(TrainerState& state, int64_t every) : s_(state), mirrors_(every) {}

  Mirrors& mirrors() { return mirrors_; }
  // True if this worker has copies.
  bool has_copies() const { return !mirrors_.copies().empty(); }
  // Drops all copies: this worker's state is not the state of the run.
  void forget();

  // Ends copying in a membership, and a recovery that did not finish.
  void end_membership();
  // Keeps this worker's own part, which may be newer than all copies. Call before the state is
  // divided again.
  void keep_own(Strategy& strategy);
  // Collective. Selects the newest step whose state the workers together have completely, and
  // returns its text.
  std::string select_state(comm::Group* group);
  // The rank that had the text; call between `select_state` and `end`.
  int text_source() const { return restoration_->text_from; }
  // True between `select_state` and `end`.
  bool assembles() const { return restoration_.has_value(); }
  // Collective. Collects this worker's new part from the workers that have copies.
  void assemble(comm::Group* group, DividedStateTransfer* divided, Update& update);
  // The state is complete. Keeps the copies of the selected step only if the state is still
  // divided.
  void end(bool divided);

 private:
  TrainerState& s_;
  Mirrors mirrors_;
  std::optional<Restoration> restoration_;
};

}  // namespace artel
