// Checks that the generator produces every layer and op.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace artel::model_fuzz {

// The layers of the text form, their options, ops, losses, metrics and optimizers that do not occur
// among the first `cases` cases of a seed. Cases are built, not run.
std::vector<std::string> never_made(uint64_t seed, int64_t cases);

}  // namespace artel::model_fuzz
