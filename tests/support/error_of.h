// The errors of tests.
#pragma once

#include <string>

#include "artel/base/error.h"

namespace artel {

// The message of the Error that `body` throws, or "" if it throws none.
template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace artel
