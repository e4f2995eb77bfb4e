// Sums of squares over a parameter, for update rules that depend on norms.
//
// They are computed in chunks of fixed length and added in order. A parameter may therefore be
// divided between chunks: the terms of its parts give the same sum as the whole.
//
//   artel::optim::Norms whole = {.parameter = 3, .direction = 1};
//   whole += {.parameter = 1, .direction = 2};  // of another part of it
#pragma once

#include <cstddef>

namespace artel::optim {

// Chunk length in elements.
inline constexpr size_t kNormChunk = 4096;

struct Norms {
  double parameter = 0, direction = 0;  // of the parameter and of its update direction

  Norms& operator+=(const Norms& other) {
    parameter += other.parameter;
    direction += other.direction;
    return *this;
  }
};

}  // namespace artel::optim
