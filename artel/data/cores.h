// Number of threads for reading and encoding whole files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>

namespace artel::data {

// The number of cores available to this process.
inline int all_cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// At most one thread per piece of work, because starting a thread takes longer than reading a small
// table.
inline int cores_for(int64_t pieces) {
  return static_cast<int>(std::clamp<int64_t>(pieces, 1, all_cores()));
}

}  // namespace artel::data
