// The OpenCL device of tests.
#pragma once

#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "artel/base/error.h"
#include "artel/exec/devices.h"

namespace artel::tests {

// Null without a loader, driver, or device; then the test skips with what is missing. All other
// problems are failures.
inline Device* opencl_device() {
  static std::string missing;
  static Device* const device = []() -> Device* {
    try {
      return &device_by_name("opencl:0");
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      missing = error.what();
      return nullptr;
    }
  }();
  if (!device)
    [] { GTEST_SKIP() << missing << "; tools/setup test installs a driver for processors"; }();
  return device;
}

}  // namespace artel::tests
