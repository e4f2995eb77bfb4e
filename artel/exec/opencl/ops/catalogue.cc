#include "artel/exec/opencl/ops/catalogue.h"

#include <map>

#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/opencl/ops/copies.h"
#include "artel/exec/opencl/ops/element_groups.h"

namespace artel::opencl {

std::vector<KernelDefinition> kernels() {
  std::map<std::string, KernelDefinition> on_cpu;
  for (KernelDefinition& kernel : builtin_kernels()) on_cpu[kernel.op] = std::move(kernel);
  std::vector<KernelDefinition> all;
  for (auto* subject : {matmul_kernels, convolution_kernels, pooling_kernels, normalisation_kernels,
                        softmax_kernels, loss_kernels, embedding_kernels, attention_kernels,
                        recurrence_kernels, shape_kernels, reduction_kernels})
    for (KernelDefinition& kernel : subject()) {
      kernel.device = "opencl";
      kernel.layouts = on_cpu.at(kernel.op).layouts;
      all.push_back(std::move(kernel));
    }
  return all;
}

DeviceTraits traits() {
  return {.device = "opencl",
          .fuses = has_formula,
          .make_group = make_element_group,
          .change_layout = make_layout_change,
          .add = add_memory,
          .adds_exactly = [](const Device& device) {
            return dynamic_cast<const OpenClDevice&>(device).description().adds_exactly;
          }};
}

}  // namespace artel::opencl
