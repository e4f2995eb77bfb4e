// How long a gradient is, as servers tell it that hold it back until the workers have decided how
// long it may be.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace artel::ps {

// The sum of squares of each segment of weights, by its first key.
using Squares = std::map<uint64_t, double>;

// Every bit survives, also of infinity. Nothing is said of no squares.
std::string to_text(const Squares& squares);
// Throws an Error of kind corrupt.
Squares squares_from_text(std::string_view text);

}  // namespace artel::ps
