#include "artel/exec/cpu/ops/catalogue.h"

#include <iterator>

namespace artel {

std::vector<KernelDefinition> builtin_kernels() {
  std::vector<KernelDefinition> all;
  for (auto* subject :
       {matmul_kernels, convolution_kernels, pooling_kernels, normalisation_kernels, row_kernels,
        attention_kernels, quantised_kernels, recurrence_kernels, shape_kernels, shard_kernels}) {
    std::vector<KernelDefinition> kernels = subject();
    std::move(kernels.begin(), kernels.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace artel
