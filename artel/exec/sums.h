// Sums of memory over lanes.
#pragma once

#include "artel/base/thread_pool.h"
#include "artel/exec/device.h"

namespace artel {

// into += from, float by float: memory of the processor, of the same size.
void add_into(ThreadPool& pool, const Memory& from, const Memory& into);

}  // namespace artel
