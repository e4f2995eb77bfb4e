#include "artel/exec/kernel.h"

#include "artel/base/registry.h"
#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/opencl/ops/catalogue.h"

namespace artel {
namespace {

std::string name_on(std::string_view op, std::string_view device) {
  return fmt::format("{} on {}", op, device);
}

Registry<KernelDefinition>& kernels_by_name() {
  static Registry<KernelDefinition> all("kernel", [] {
    Registry<KernelDefinition>::Entries entries;
    for (KernelDefinition& kernel : builtin_kernels())
      entries.emplace_back(name_on(kernel.op, kernel.device), std::move(kernel));
    for (KernelDefinition& kernel : opencl::kernels())
      entries.emplace_back(name_on(kernel.op, kernel.device), std::move(kernel));
    return entries;
  }());
  return all;
}

}  // namespace

void register_kernel(KernelDefinition definition) {
  require(static_cast<bool>(definition.make) != static_cast<bool>(definition.elements),
          ErrorKind::invalid_argument,
          "kernel of the op '{}': got {}, expected one of make and elements", definition.op,
          definition.make ? "both" : "neither");
  std::string name = name_on(definition.op, definition.device);
  kernels_by_name().add(std::move(name), std::move(definition));
}

bool has_kernel(const Device& device, std::string_view op) {
  return kernels_by_name().find(name_on(op, device.kind())) != nullptr;
}

const DeviceTraits* find_traits(const Device& device) {
  static const DeviceTraits opencl = opencl::traits();
  return device.kind() == opencl.device ? &opencl : nullptr;
}

const KernelDefinition& find_kernel(const Device& device, std::string_view op) {
  const KernelDefinition* const found = kernels_by_name().find(name_on(op, device.kind()));
  require(found, ErrorKind::unsupported,
          "op '{}' has no kernel for {}; add one with register_kernel", op, device.kind());
  return *found;
}

}  // namespace artel
