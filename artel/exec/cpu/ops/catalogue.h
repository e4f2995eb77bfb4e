// The built-in kernels, one subject a file. To add a file: declare its function here and list it in
// catalogue.cc. Element-wise ops are not here: exec/plan/element_groups.h makes chains of them
// single kernels. Nor are reshape and shard_copies: they are views
// (exec/plan/plan.cc).
#pragma once

#include <vector>

#include "artel/exec/kernel.h"

namespace artel {

std::vector<KernelDefinition> matmul_kernels();
std::vector<KernelDefinition> convolution_kernels();
std::vector<KernelDefinition> pooling_kernels();
std::vector<KernelDefinition> normalisation_kernels();
std::vector<KernelDefinition> row_kernels();
std::vector<KernelDefinition> attention_kernels();
std::vector<KernelDefinition> quantised_kernels();
std::vector<KernelDefinition> recurrence_kernels();
std::vector<KernelDefinition> shape_kernels();
std::vector<KernelDefinition> shard_kernels();

std::vector<KernelDefinition> builtin_kernels();

}  // namespace artel
