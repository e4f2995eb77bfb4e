// Helpers shared by several OpenCL kernels.
#pragma once

#include "artel/exec/kernel.h"
#include "artel/exec/opencl/device.h"

namespace artel::opencl {

inline OpenClDevice& device_of(Device& device) { return dynamic_cast<OpenClDevice&>(device); }
inline OpenClDevice& device_of(const KernelRequest& request) { return device_of(request.device); }

inline int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace artel::opencl
