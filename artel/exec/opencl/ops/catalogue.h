// The OpenCL kernels, one file per topic. To add a file, declare its function here and list it in
// catalogue.cc. Layouts are those of the CPU kernel of the same op.
#pragma once

#include <vector>

#include "artel/exec/kernel.h"

namespace artel::opencl {

std::vector<KernelDefinition> matmul_kernels();
std::vector<KernelDefinition> convolution_kernels();
std::vector<KernelDefinition> pooling_kernels();
std::vector<KernelDefinition> normalisation_kernels();
std::vector<KernelDefinition> softmax_kernels();
std::vector<KernelDefinition> loss_kernels();
std::vector<KernelDefinition> embedding_kernels();
std::vector<KernelDefinition> attention_kernels();
std::vector<KernelDefinition> recurrence_kernels();
std::vector<KernelDefinition> shape_kernels();
std::vector<KernelDefinition> reduction_kernels();

std::vector<KernelDefinition> kernels();
// Element-wise groups and layout conversions.
DeviceTraits traits();

}  // namespace artel::opencl
