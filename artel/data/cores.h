// How many threads read and encode data that is read as a whole.
#pragma once

#include <algorithm>
#include <thread>

namespace artel::data {

// All cores that this process may use.
inline int all_cores() {
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace artel::data
