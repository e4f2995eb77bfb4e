// Consistency check of collectives between ranks without shared memory.
#pragma once

#include "artel/comm/executor.h"

namespace artel::comm {

// Sends the operation to the next rank of a ring and compares it with that of the previous one: if
// any two ranks differ, some neighbours do. Throws an Error that shows the difference.
void compare_operations(const Route& route, int rank, Patience& patience);

}  // namespace artel::comm
