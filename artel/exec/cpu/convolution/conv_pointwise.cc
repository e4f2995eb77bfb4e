#include "artel/exec/cpu/convolution/conv_pointwise.h"

#include <vector>

#include "artel/exec/cpu/matmul/gemm.h"

namespace artel::kernels {
namespace {

GemmShape product_of(const ConvShape& s, ConvPass pass) {
  const int64_t pixels = s.n * s.h * s.w;
  switch (pass) {
    case ConvPass::forward:
      return {pixels, s.k, s.c};
    case ConvPass::backward_data:
      return {pixels, s.c, s.k, false, true};
    case ConvPass::backward_weights:
      break;
  }
  return {s.c, s.k, pixels, true, false};
}

class PointwiseConvolution final : public ConvKernel {
 public:
  PointwiseConvolution(const GemmShape& shape, int64_t pixels, int threads, int lanes, int together)
      : gemm_(shape, choose_gemm(shape, lanes), threads, together), pixels_(pixels) {}

  size_t workspace_bytes() const override { return gemm_.workspace_bytes(); }
  bool caps() const override { return true; }

  void run(ThreadPool& pool, const float* first, const float* second, float* out,
           const ConvEpilogue& epilogue, std::byte* workspace) const override {
    const GemmShape& s = gemm_.shape();
    gemm_.run(pool, first, s.transpose_a ? s.m : s.k, second, s.transpose_b ? s.k : s.n, out, s.n,
              {.bias = epilogue.bias, .relu = epilogue.relu, .most = epilogue.most}, workspace);
  }

  bool joins() const override { return gemm_.joins_rows() || gemm_.joins_sums(); }

  void run_lanes(ThreadPool& pool, std::span<const ConvLane> lanes, const ConvEpilogue& epilogue,
                 std::byte* workspace) const override {
    const GemmShape& s = gemm_.shape();
    std::vector<GemmRows> rows;
    for (const ConvLane& lane : lanes)
      rows.push_back({lane.first, lane.out, lane.images * pixels_});
    gemm_.run_rows(pool, rows, s.k, lanes[0].second, s.transpose_b ? s.k : s.n, s.n,
                   {.bias = epilogue.bias, .relu = epilogue.relu, .most = epilogue.most},
                   workspace);
  }

  void run_sums(ThreadPool& pool, std::span<const ConvLane> lanes, std::span<const int> merges,
                std::byte* workspace) const override {
    const GemmShape& s = gemm_.shape();
    std::vector<GemmTerms> terms;
    for (const ConvLane& lane : lanes)
      terms.push_back({lane.first, lane.second, lane.images * pixels_});
    gemm_.run_sums(pool, terms, merges, s.m, s.n, lanes[0].out, s.n, workspace);
  }

 private:
  Gemm gemm_;
  int64_t pixels_;  // of an image
};

}  // namespace

bool pointwise_applies(const ConvShape& s) {
  return s.kh == 1 && s.kw == 1 && s.stride_h == 1 && s.stride_w == 1 && s.groups == 1 &&
         s.pad_top == 0 && s.pad_left == 0 && s.pad_bottom == 0 && s.pad_right == 0;
}

std::unique_ptr<ConvKernel> make_pointwise(const ConvShape& shape, ConvPass pass, int threads,
                                           int lanes, int together) {
  return std::make_unique<PointwiseConvolution>(product_of(shape, pass), shape.h * shape.w, threads,
                                                lanes, together);
}

}  // namespace artel::kernels
