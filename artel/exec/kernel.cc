#include "artel/exec/kernel.h"

#include <map>
#include <mutex>

#include "artel/base/error.h"
#include "artel/exec/ops/catalogue.h"

namespace artel {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, KernelDefinition, std::less<>> kernels;

  Registry() {
    for (KernelDefinition& kernel : builtin_kernels()) {
      std::string op = kernel.op;
      kernels.emplace(std::move(op), std::move(kernel));
    }
  }
};

Registry& registry() {
  static Registry instance;
  return instance;
}

}  // namespace

void register_kernel(KernelDefinition definition) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  std::string op = definition.op;
  const bool added = r.kernels.emplace(op, std::move(definition)).second;
  require(added, ErrorKind::invalid_argument, "op '{}' has a kernel already", op);
}

const KernelDefinition& find_kernel(std::string_view op) {
  Registry& r = registry();
  std::lock_guard lock(r.mutex);
  const auto found = r.kernels.find(op);
  require(found != r.kernels.end(), ErrorKind::unsupported,
          "op '{}' has no kernel; add one with register_kernel", op);
  return found->second;
}

}  // namespace artel
