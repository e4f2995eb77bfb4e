// Adds to errors where they come from.
#pragma once

#include "artel/base/error.h"

namespace artel {

// Returns what `work()` returns. An Error that it throws gets "[where] " in front.
template <typename Work>
auto with_where(std::string_view where, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const Error& error) {
    fail(error.kind(), "[{}] {}", where, error.what());
  }
}

}  // namespace artel
