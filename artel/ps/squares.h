// The norm of a gradient: servers report it while they hold the gradient back, until the workers
// have decided how to clip it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace artel::ps {

// The sum of squares of each segment of weights, by its first key.
using Squares = std::map<uint64_t, double>;

// Preserves every bit, also of infinity. Empty text for no squares.
std::string to_text(const Squares& squares);
// Throws an Error of kind corrupt.
Squares squares_from_text(std::string_view text);

}  // namespace artel::ps
