// How many threads read and encode data that is read as a whole.
#pragma once

#include <algorithm>
#include <cstdint>
#include <thread>

namespace artel::data {

// All cores that this process may use.
inline int all_cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

// No more of them than there are pieces of work: to start a thread takes longer than a small table.
inline int cores_for(int64_t pieces) {
  return static_cast<int>(std::clamp<int64_t>(pieces, 1, all_cores()));
}

}  // namespace artel::data
