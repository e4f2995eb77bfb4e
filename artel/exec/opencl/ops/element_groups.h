// Groups of element-wise ops as generated OpenCL programs.
#pragma once

#include <string_view>

#include "artel/exec/kernel.h"

namespace artel::opencl {

bool has_formula(std::string_view op);

// One work item computes one element of all outputs; intermediate values stay in registers. Extents
// and strides are arguments, so layers of different sizes share a program.
Kernel make_element_group(const ElementGroup& group, Device& device);

}  // namespace artel::opencl
