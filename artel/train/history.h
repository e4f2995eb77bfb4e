// What a run has been through: for a worker that joins it, and may have to report it as a whole.
// Internal to train.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artel/train/trainer.h"

namespace artel {

struct History {
  double seconds = 0;  // since training began
  int64_t samples = 0;
  std::vector<ChangedWorkers> changes = {};
};

std::string to_text(const History& history);
// Throws an Error of kind corrupt.
History history_from_text(std::string_view text);

}  // namespace artel
