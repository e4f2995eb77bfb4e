// Tests that a device computes the same results as the CPU, and measures its speed.
#pragma once

#include <string>

#include "artel/exec/opencl/device.h"

namespace artel::opencl {

// Runs the forward and backward pass of small image and text networks on the device and on the CPU.
// Returns a description of the first difference beyond rounding errors or of a driver failure, or
// "" on success.
std::string self_test(OpenClDevice& device);

// Floating-point operations per second of the matrix product, best of several runs.
double measure_products(OpenClDevice& device);
// Bytes read plus bytes written per second by a copy within device memory.
double measure_bandwidth(OpenClDevice& device);

}  // namespace artel::opencl
