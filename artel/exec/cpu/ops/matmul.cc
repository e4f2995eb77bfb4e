#include <algorithm>

#include "artel/exec/cpu/elementwise/gelu.h"
#include "artel/exec/cpu/matmul/gemm.h"
#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/cpu/rows/reduce.h"

namespace artel {
namespace {

using kernels::GemmAlgorithm;
using kernels::GemmShape;

GemmAlgorithm by_name(const std::string& name) {
  for (const GemmAlgorithm algorithm :
       {GemmAlgorithm::packed, GemmAlgorithm::onednn, GemmAlgorithm::openblas, GemmAlgorithm::bf16})
    if (name == kernels::to_string(algorithm)) return algorithm;
  return GemmAlgorithm::packed;
}

// Makes the kernel with the algorithm selected by the rule, a recorded choice, or a measurement.
// `lanes` share the right factor of this product.
template <typename Make>
Kernel choose_and_make(const KernelRequest& request, const GemmShape& shape, int lanes,
                       const Make& make) {
  if (request.choices.bf16) {
    Kernel kernel = make(GemmAlgorithm::bf16);
    kernel.algorithm = kernels::to_string(GemmAlgorithm::bf16);
    return kernel;
  }
  std::vector<std::string> candidates;
  for (const GemmAlgorithm algorithm : kernels::gemm_candidates(shape))
    candidates.emplace_back(kernels::to_string(algorithm));
  const std::string key =
      fmt::format("matmul {}x{}x{}{}{}", shape.m, shape.n, shape.k, shape.transpose_a ? " ta" : "",
                  shape.transpose_b ? " tb" : "");
  const std::string name = request.choices.choose(
      key, candidates, std::string(kernels::to_string(kernels::choose_gemm(shape, lanes))),
      [&](const std::string& candidate) { return measure(request, make(by_name(candidate))); });
  Kernel kernel = make(by_name(name));
  kernel.algorithm = name;
  return kernel;
}

// The first input and the first output of lanes as rows of one product.
std::vector<kernels::GemmRows> rows_of_lanes(std::span<const KernelRun> lanes) {
  std::vector<kernels::GemmRows> all;
  for (const KernelRun& lane : lanes) all.push_back({lane.in(0), lane.out(0), lane.rows});
  return all;
}

Kernel make_dense(const KernelRequest& request) {
  const Rows x = rows_of(request.in(0));
  const bool in_out = request.attributes().flag("in_out");
  const int64_t out = request.out().back(), in = x.columns, ldb = in_out ? out : in;
  const GemmShape shape = {x.rows, out, in, false, !in_out};
  const bool bias = request.inputs() == 3, relu = request.attributes().flag("relu");
  const bool gelu = request.attributes().flag("gelu") || request.attributes().flag("gelu_tanh");
  const bool slope = request.attributes().flag("slope");
  const auto kind = request.attributes().flag("gelu") ? kernels::Gelu::exact : kernels::Gelu::tanh;
  return choose_and_make(request, shape, request.lanes.all, [&](GemmAlgorithm algorithm) {
    auto gemm =
        std::make_shared<kernels::Gemm>(shape, algorithm, request.threads, request.lanes.together);
    const auto epilogue_of = [=](const KernelRun& run) {
      return kernels::GemmEpilogue{.bias = bias ? run.in(2) : nullptr, .relu = relu};
    };
    const auto apply_gelu = [=](const KernelRun& run, float* block, int64_t rows, int64_t columns) {
      for (int64_t i = 0; i < rows; ++i, block += out)
        gelu_in_place(kind, block, slope ? run.out(1) + (block - run.out(0)) : nullptr, columns);
    };
    Kernel kernel = {{}, gemm->workspace_bytes(), [=](const KernelRun& run) {
                       kernels::GemmEpilogue epilogue = epilogue_of(run);
                       if (gelu)
                         epilogue.finish = [&](float* block, int64_t rows, int64_t columns) {
                           apply_gelu(run, block, rows, columns);
                         };
                       gemm->run(run.pool, run.in(0), in, run.in(1), ldb, run.out(0), out, epilogue,
                                 run.workspace);
                     }};
    kernel.rows = shape.m;
    if (!gemm->joins_rows()) return kernel;
    join_lanes(request, kernel, [=](std::span<const KernelRun> lanes) {
      kernels::GemmEpilogue epilogue = epilogue_of(lanes[0]);
      if (gelu)
        epilogue.finish = [&](float* block, int64_t rows, int64_t columns) {
          for (const KernelRun& lane : lanes)
            if (block >= lane.out(0) && block < lane.out(0) + lane.rows * out)
              apply_gelu(lane, block, rows, columns);
        };
      gemm->run_rows(lanes[0].pool, rows_of_lanes(lanes), in, lanes[0].in(1), ldb, out, epilogue,
                     lanes[0].workspace);
    });
    return kernel;
  });
}

Kernel make_matmul(const KernelRequest& request) {
  const bool ta = request.attributes().flag("transpose_a");
  const bool tb = request.attributes().flag("transpose_b");
  const Shape &a = request.in(0), &b = request.in(1), &c = request.out();
  const int64_t lda = a.back(), ldb = b.back(), ldc = c.back();
  const int64_t k = ta ? a[a.rank() - 2] : a.back();
  if (b.rank() == 2) {
    const GemmShape shape = {rows_of(c).rows, ldc, k, ta, tb};
    return choose_and_make(
        request, shape, ta ? 1 : request.lanes.all, [&](GemmAlgorithm algorithm) {
          auto gemm = std::make_shared<kernels::Gemm>(shape, algorithm, request.threads,
                                                      request.lanes.together);
          Kernel kernel = {{}, gemm->workspace_bytes(), [=](const KernelRun& run) {
                             gemm->run(run.pool, run.in(0), lda, run.in(1), ldb, run.out(0), ldc,
                                       {}, run.workspace);
                           }};
          // A weight gradient sums over the rows of both factors, which are those of the samples.
          kernel.rows = ta ? k : shape.m;
          if (gemm->joins_rows())
            join_lanes(request, kernel, [=](std::span<const KernelRun> lanes) {
              gemm->run_rows(lanes[0].pool, rows_of_lanes(lanes), lda, lanes[0].in(1), ldb, ldc, {},
                             lanes[0].workspace);
            });
          if (request.lanes.together > 1 && gemm->joins_sums())
            kernel.run_sums = [=](std::span<const KernelRun> lanes, std::span<const int> merges) {
              std::vector<kernels::GemmTerms> terms;
              for (const KernelRun& lane : lanes)
                terms.push_back({lane.in(0), lane.in(1), lane.rows});
              gemm->run_sums(lanes[0].pool, terms, merges, lda, ldb, lanes[0].out(0), ldc,
                             lanes[0].workspace);
            };
          return kernel;
        });
  }
  const GemmShape shape = {c[c.rank() - 2], ldc, k, ta, tb};
  const auto matrix = [](const Shape& s) { return s[s.rank() - 2] * s.back(); };
  const int64_t size_a = matrix(a), size_b = matrix(b), size_c = matrix(c);
  int64_t batch = 1;
  for (int axis = 0; axis < c.rank() - 2; ++axis) batch *= c[axis];
  return choose_and_make(request, shape, 1, [&](GemmAlgorithm algorithm) {
    auto gemm = std::make_shared<kernels::BatchedGemm>(shape, batch, 1, algorithm, request.threads);
    return Kernel{{}, gemm->workspace_bytes(), [=](const KernelRun& run) {
                    gemm->run(run.pool, run.in(0), lda, {size_a, 0}, run.in(1), ldb, {size_b, 0},
                              run.out(0), ldc, {size_c, 0}, {}, run.workspace);
                  }};
  });
}

LayoutChoice channel_layouts(const Graph& graph, const Node& node,
                             const std::vector<Layout>& offered) {
  if (node.attributes.flag("channels_first")) return images_channels_last(graph, node, offered);
  return {std::vector<Layout>(node.inputs.size()), std::vector<Layout>(node.outputs.size())};
}

Rows channels(const KernelRequest& request) {
  return request.attributes().flag("channels_first") ? channel_rows(request.in(0))
                                                     : rows_of(request.in(0));
}

Kernel make_bias_backward(const KernelRequest& request) {
  const Rows all = channels(request);
  const int64_t rows = all.rows, columns = all.columns;
  const auto bytes = static_cast<size_t>(kernels::column_sum_workspace_bytes(rows, columns));
  const auto backward = request.attributes().flag("slope") ? kernels::slope_bias_backward
                                                           : kernels::relu_bias_backward;
  return {{},
          bytes,
          [=](const KernelRun& run) {
            backward(run.pool, rows, columns, run.in(0), run.in(1), run.out(0), run.out(1),
                     run.workspace);
          },
          {{0, 0}}};
}

Kernel make_column_sum(const KernelRequest& request) {
  const Rows all = channels(request);
  const int64_t rows = all.rows, columns = all.columns;
  const auto bytes = static_cast<size_t>(kernels::column_sum_workspace_bytes(rows, columns));
  return {{}, bytes, [=](const KernelRun& run) {
            kernels::bias_gradient(run.pool, rows, columns, run.in(0), run.out(0), run.workspace);
          }};
}

}  // namespace

std::vector<KernelDefinition> matmul_kernels() {
  return {{"dense", make_dense},
          {"matmul", make_matmul},
          {"bias_backward", make_bias_backward, channel_layouts},
          {"column_sum", make_column_sum, channel_layouts}};
}

}  // namespace artel
