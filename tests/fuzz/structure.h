// Mutations that keep the outer form of an input, so that readers do not refuse it at the door:
// JSON, alone, behind a safetensors length or in front of other text, protocol buffers, frames of
// control connections, and npy headers.
#pragma once

#include <optional>
#include <string>

#include "artel/base/random.h"

namespace artel::fuzz {

// Changes a value inside of the input; nothing if the input has none of these forms.
std::optional<std::string> mutate_inside(const std::string& input, Random& random);

}  // namespace artel::fuzz
