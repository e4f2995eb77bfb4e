// The OpenCL device of tests.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

#include "artel/base/error.h"
#include "artel/exec/devices.h"

namespace artel::tests {

// Null without a loader, driver, or device; then the test fails with what is missing, because
// tools/setup installs a driver for CPUs. It skips where ARTEL_TESTS_WITHOUT_OPENCL is set, for
// machines that cannot have one. All other problems are failures.
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
    [] {
      if (std::getenv("ARTEL_TESTS_WITHOUT_OPENCL")) GTEST_SKIP() << missing;
      FAIL() << missing << "; tools/setup test installs a driver for processors";
    }();
  return device;
}

}  // namespace artel::tests
