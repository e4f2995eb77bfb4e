// oneDNN without memory for its own buffers: the kernels must report it as std::bad_alloc, which
// costs one worker, and not as an error of the run.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <new>

#include "artel/exec/cpu/matmul/gemm.h"
#include "artel/exec/libraries.h"
#include "tests/unit/exec/kernel_test.h"

namespace artel::kernels {
namespace {

// Allows this process no more address space than it has, and uses up large free blocks.
void take_no_more_memory() {
  int64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  const rlim_t bytes = static_cast<rlim_t>(pages * ::sysconf(_SC_PAGESIZE));
  const rlimit limit{.rlim_cur = bytes, .rlim_max = RLIM_INFINITY};
  ::setrlimit(RLIMIT_AS, &limit);
  for (size_t size = 64 << 20; size >= 16 << 10; size /= 2) {
    while (volatile void* block = std::malloc(size)) (void)block;
  }
}

template <class Body>
[[noreturn]] void exit_by_lack_of_memory(const Body& body) {
  take_no_more_memory();
  try {
    body();
  } catch (const std::bad_alloc&) {
    ::_exit(7);
  }
  ::_exit(1);
}

TEST(LackOfMemoryDeathTest, InAProductOfOnednnIsBadAlloc) {
  GTEST_FLAG_SET(death_test_style, "fast");
  const auto multiply = [] {
    constexpr int64_t kSize = 1500;
    ThreadPool pool(1, limit_library_threads);
    const Gemm gemm({kSize, kSize, kSize, false, false}, GemmAlgorithm::onednn, 1);
    const Workspace workspace(gemm.workspace_bytes());
    const std::vector<float> a(kSize * kSize, 1), b(kSize * kSize, 1);
    std::vector<float> c(kSize * kSize);
    const auto run = [&] {
      gemm.run(pool, a.data(), kSize, b.data(), kSize, c.data(), kSize, {}, workspace.data());
    };
    run();  // generates the machine code, which oneDNN cannot do without memory
    exit_by_lack_of_memory(run);
  };
  EXPECT_EXIT(multiply(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace artel::kernels
