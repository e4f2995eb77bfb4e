// Lanes that move from worker to worker after each step, as they do where one worker is slower.
//
// The speeds are random numbers, so the same lanes move again however busy the machine is.
#pragma once

#include <cstdint>

#include "artel/base/keys.h"

namespace artel::model_fuzz {

struct MovingLanesOptions {
  bool moves_lanes = false;

  void visit(KeyVisitor& field) {
    field({"cluster.moves_lanes", "Move lanes after each step, by random speeds."}, moves_lanes);
  }
};

// Registers variants of the strategies that balance lanes: those that a training with the option
// gets. Called once, before any training.
void register_moving_lanes();

// Moves the lanes of the training on this thread, if it is one of these. All workers of a training
// call it after the same step.
void move_lanes(uint64_t seed, int64_t step);

}  // namespace artel::model_fuzz
