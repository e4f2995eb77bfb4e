#include "artel/exec/sums.h"

#include "artel/base/error.h"
#include "artel/exec/cpu/elementwise/copy.h"

namespace artel {

void add_into(ThreadPool& pool, const Memory& from, const Memory& into) {
  const std::span<float> x = from.floats(), y = into.floats();
  require(x.size() == y.size(), ErrorKind::internal, "[sum] got {} and {} numbers", x.size(),
          y.size());
  kernels::add_into(pool, static_cast<int64_t>(y.size()), x.data(), y.data());
}

}  // namespace artel
