// The history of a run, sent to newcomers, which may have to report it later. Internal to train.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "artel/train/trainer.h"

namespace artel {

struct History {
  double seconds = 0;  // training time
  int64_t samples = 0;
  std::vector<ChangedWorkers> changes = {};
};

std::string to_text(const History& history);
// Throws Error(corrupt) if the text is invalid.
History history_from_text(std::string_view text);

}  // namespace artel
