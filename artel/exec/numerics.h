// The version of the arithmetic. Two builds of the same version compute the same bits from the same
// state on the same processor. A change of bits raises it and adds a line here and to the
// changelog.
//
// 1  until 0.1
// 2  0.2: runs with several lanes of fewer than five rows, or fewer than eight images, choose their
//    kernels for the whole batch; with three or more lanes, oneDNN's convolutions cut each lane
//    into fewer parts; `hierarchical` in its own order adds in another order with 3, 5, 6 or 7
//    workers on a machine
#pragma once

namespace artel {

inline constexpr int kNumericsVersion = 2;

}  // namespace artel
