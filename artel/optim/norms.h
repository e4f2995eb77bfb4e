// Sums of squares over a parameter, for rules that look at more than one element at a time.
//
// They are formed in chunks of fixed length that are added in order. So a parameter may lie in
// parts that are cut between chunks: whoever has all their terms gets the sum of the whole.
//
//   artel::optim::Norms whole = {.parameter = 3, .direction = 1};
//   whole += {.parameter = 1, .direction = 2};  // of another part of it
#pragma once

#include <cstddef>

namespace artel::optim {

// In elements.
inline constexpr size_t kNormChunk = 4096;

struct Norms {
  double parameter = 0, direction = 0;  // of what is updated, and of where it would go

  Norms& operator+=(const Norms& other) {
    parameter += other.parameter;
    direction += other.direction;
    return *this;
  }
};

}  // namespace artel::optim
