// Runs a case and compares it with the reference and with itself.
#pragma once

#include <optional>
#include <string>

#include "tests/model_fuzz/network_case.h"

namespace artel::model_fuzz {

// What is wrong, or nothing: losses, gradients and weights beside the reference in double; the same
// bits with other threads, less memory and other workers, and again; no memory read that nobody
// wrote. A case that cannot be built is right too.
std::optional<std::string> what_is_wrong(const NetworkCase& network);

// The smallest case found by simplifying that is still wrong.
NetworkCase reduce(NetworkCase network);

}  // namespace artel::model_fuzz
