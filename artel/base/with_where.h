// Adds the location to errors.
#pragma once

#include "artel/base/error.h"

namespace artel {

// Returns the result of `work()`. Prefixes the message of an Error with "[where] ".
template <typename Work>
auto with_where(std::string_view where, const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const Error& error) {
    fail(error.kind(), "[{}] {}", where, error.what());
  }
}

}  // namespace artel
