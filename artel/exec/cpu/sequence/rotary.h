// Rotary positions: pairs of elements of each head, rotated by angles that grow with the position.
#pragma once

#include <cstdint>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

struct RotaryShape {
  int64_t batch, positions, heads;
  int64_t width;         // of a head; even
  int64_t table_rows;    // positions in the table
  bool inverse = false;  // rotates back
};

// y = x [batch, positions, heads * width] rotated; y may be x. Row p of `table` has the cosines,
// then the sines, of the width / 2 angles of position p. Position i of x is places[i], or i if
// `places` is null. Throws for a place outside of the table.
void rotary(ThreadPool& pool, const RotaryShape& shape, const float* x, const float* table,
            const int32_t* places, float* y);

}  // namespace artel::kernels
