#include "artel/exec/libraries.h"

#include <cblas.h>

// Declared here because <omp.h> comes with the compiler's OpenMP flag, which we do not use. oneDNN
// takes its thread count from this setting, which is kept for each thread.
extern "C" void omp_set_num_threads(int threads);

namespace artel {

void limit_library_threads() {
  static const bool openblas_limited = (openblas_set_num_threads(1), true);
  thread_local const bool openmp_limited = (omp_set_num_threads(1), openblas_limited);
  (void)openmp_limited;
}

}  // namespace artel
