#include "artel/exec/libraries.h"

#include <cblas.h>
#include <fmt/format.h>
#include <oneapi/dnnl/dnnl.h>
#include <oneapi/dnnl/dnnl_debug.h>

#include <algorithm>
#include <cstdlib>
#include <new>

#include "artel/base/error.h"
#include "artel/exec/instructions.h"
#include "hwy/targets.h"

// Declared here because <omp.h> comes with the compiler's OpenMP flag, which we do not use. oneDNN
// takes its thread count from this setting, which is kept for each thread.
extern "C" void omp_set_num_threads(int threads);

namespace artel {
namespace {

// oneDNN 2.6 dies of SIGILL at its first kernel with tile registers (AMX) on processors that have
// them, even if Linux has granted them to the process. Only bf16 and int8 products would use them.
// Limits oneDNN to the preceding instruction set, or to the user's choice.
bool do_without_tiles() {
  return settle_instructions() || std::getenv("ONEDNN_MAX_CPU_ISA") ||
         dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx512_core_bf16) == dnnl_success;
}

}  // namespace

void limit_library_threads() {
  static const bool prepared = (openblas_set_num_threads(1), do_without_tiles());
  thread_local const bool openmp_limited = (omp_set_num_threads(1), prepared);
  (void)openmp_limited;
}

void fail_in_onednn(int status, std::string_view what) {
  if (status == dnnl_out_of_memory) throw std::bad_alloc();
  fail(ErrorKind::internal, "oneDNN refuses {}: {}", what,
       dnnl_status2str(static_cast<dnnl_status_t>(status)));
}

std::string instruction_sets(const KernelChoices& choices) {
  limit_library_threads();  // determines the instructions of oneDNN
  // Among the sets of both the processor and our kernels, the lowest bit is the one in use.
  const int64_t ours = usable_targets() & HWY_TARGETS;
  const dnnl_version_t& version = *dnnl_version();
  std::string text =
      fmt::format("{}, oneDNN {}.{}.{} {}", hwy::TargetName(ours & -ours), version.major,
                  version.minor, version.patch, dnnl_cpu_isa2str(dnnl_get_effective_cpu_isa()));
  // OpenBLAS runs only the shapes that tuning has chosen it for.
  const bool openblas = std::any_of(choices.chosen.begin(), choices.chosen.end(),
                                    [](const auto& choice) { return choice.second == "openblas"; });
  if (openblas) text += fmt::format(", {}", openblas_get_config());
  return text;
}

}  // namespace artel
