// artel_bench_gemm [THREADS [REPEATS]]: milliseconds and GFLOP/s of each matrix product algorithm
// on the shapes of training steps.
#include <fmt/format.h>

#include "artel/exec/cpu/matmul/gemm.h"
#include "artel/exec/libraries.h"
#include "timing.h"

namespace artel::bench {
namespace {

using kernels::Gemm;
using kernels::GemmAlgorithm;
using kernels::GemmShape;

const std::vector<GemmShape> kShapes = {
    // the MLP: forward, backward weights, backward data
    {128, 1024, 784},
    {128, 1024, 1024},
    {128, 10, 1024},
    {784, 1024, 128, true},
    {1024, 1024, 128, true},
    {1024, 10, 128, true},
    {128, 1024, 1024, false, true},
    {128, 1024, 10, false, true},
    // LeNet
    {64, 120, 400},
    {64, 84, 120},
    {64, 10, 84},
    {400, 120, 64, true},
    {64, 400, 120, false, true},
    // GPT
    {2048, 1152, 384},
    {2048, 384, 384},
    {2048, 1536, 384},
    {2048, 384, 1536},
    {384, 1536, 2048, true},
    {2048, 384, 1536, false, true},
    {2048, 1536, 384, false, true},
    // ViT
    {4160, 576, 192},
    {4160, 192, 192},
    {4160, 768, 192},
    {4160, 192, 768},
    {4160, 192, 576, false, true},
    {4160, 192, 768, false, true},
    {4160, 768, 192, false, true},
    {192, 576, 4160, true},
    {192, 192, 4160, true},
    {192, 768, 4160, true},
    {768, 192, 4160, true},
    // attention
    {256, 256, 64, false, true},
    {256, 64, 256},
    // squares and odd sizes
    {64, 64, 64},
    {256, 256, 256},
    {512, 512, 512},
    {1024, 1024, 1024},
    {2048, 2048, 2048},
    {1, 1024, 1024},
    {4, 1024, 1024},
    {16, 1024, 1024},
    {333, 777, 555},
    {65536, 64, 27}};

void run(int threads, int repeats) {
  ThreadPool pool(threads, limit_library_threads);
  fmt::print("{:>6} {:>6} {:>6} {:>2}", "m", "n", "k", "");
  for (const GemmAlgorithm algorithm : kernels::gemm_candidates({})) {
    fmt::print(" {:>20}", to_string(algorithm));
  }
  fmt::print("   (ms, GFLOP/s; {} threads)\n", threads);
  for (const GemmShape& s : kShapes) {
    const Buffer a(s.m * s.k), b(s.k * s.n), c(s.m * s.n);
    std::vector<Gemm> gemms;
    for (const GemmAlgorithm algorithm : kernels::gemm_candidates(s)) {
      gemms.emplace_back(s, algorithm, threads);
    }
    std::vector<Buffer> workspaces;
    std::vector<std::function<void()>> runs;
    for (const Gemm& gemm : gemms) {
      workspaces.emplace_back(gemm.workspace_bytes() / sizeof(float));
      runs.push_back([&, workspace = workspaces.back().bytes()] {
        gemm.run(pool, a.data(), s.transpose_a ? s.m : s.k, b.data(), s.transpose_b ? s.k : s.n,
                 c.data(), s.n, {}, workspace);
      });
    }
    const double flops = 2.0 * s.m * s.n * s.k;
    fmt::print("{:>6} {:>6} {:>6} {}{}", s.m, s.n, s.k, s.transpose_a ? 'T' : 'N',
               s.transpose_b ? 'T' : 'N');
    for (const double seconds : median_seconds(runs, flops < 1e8 ? 10 * repeats : repeats)) {
      fmt::print(" {:>12.3f} {:>7.1f}", 1e3 * seconds, flops / seconds / 1e9);
    }
    fmt::print("\n");
  }
}

}  // namespace
}  // namespace artel::bench

int main(int argc, char** argv) {
  artel::bench::run(argc > 1 ? std::atoi(argv[1]) : 1, argc > 2 ? std::atoi(argv[2]) : 15);
}
