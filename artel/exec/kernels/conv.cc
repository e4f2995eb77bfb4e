#include "artel/exec/kernels/conv.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/exec/kernels/conv_kernel.h"
#include "artel/exec/kernels/conv_patches.h"
#include "artel/exec/kernels/winograd.h"

namespace artel::kernels {
namespace {

class SimpleConv final : public ConvKernel {
 public:
  SimpleConv(const ConvShape& shape, ConvPass pass) : s_(shape), pass_(pass) {}
  size_t workspace_bytes() const override { return 0; }
  void run(ThreadPool&, const float* first, const float* second, float* out,
           const ConvEpilogue& epilogue, std::byte*) const override {
    const int64_t cg = s_.c / s_.groups, kg = s_.k / s_.groups, oh = s_.out_h(), ow = s_.out_w();
    if (pass_ == ConvPass::backward_data) std::fill_n(out, s_.n * s_.h * s_.w * s_.c, 0.f);
    if (pass_ == ConvPass::backward_weights) std::fill_n(out, s_.kh * s_.kw * cg * s_.k, 0.f);
    for (int64_t n = 0; n < s_.n; ++n)
      for (int64_t oy = 0; oy < oh; ++oy)
        for (int64_t ox = 0; ox < ow; ++ox) {
          const int64_t y = ((n * oh + oy) * ow + ox) * s_.k;
          if (pass_ == ConvPass::forward)
            for (int64_t k = 0; k < s_.k; ++k) out[y + k] = epilogue.bias ? epilogue.bias[k] : 0;
          for (int64_t ky = 0; ky < s_.kh; ++ky)
            for (int64_t kx = 0; kx < s_.kw; ++kx) {
              const int64_t iy = oy * s_.stride_h + ky * s_.dilation_h - s_.pad_top;
              const int64_t ix = ox * s_.stride_w + kx * s_.dilation_w - s_.pad_left;
              if (iy < 0 || iy >= s_.h || ix < 0 || ix >= s_.w) continue;
              const int64_t x = ((n * s_.h + iy) * s_.w + ix) * s_.c;
              for (int64_t g = 0; g < s_.groups; ++g)
                for (int64_t c = 0; c < cg; ++c) {
                  const int64_t w = ((ky * s_.kw + kx) * cg + c) * s_.k + g * kg;
                  const int64_t xi = x + g * cg + c, yi = y + g * kg;
                  for (int64_t k = 0; k < kg; ++k) {
                    if (pass_ == ConvPass::forward) out[yi + k] += first[xi] * second[w + k];
                    if (pass_ == ConvPass::backward_data) out[xi] += first[yi + k] * second[w + k];
                    if (pass_ == ConvPass::backward_weights)
                      out[w + k] += first[xi] * second[yi + k];
                  }
                }
            }
          if (pass_ == ConvPass::forward && epilogue.relu)
            for (int64_t k = 0; k < s_.k; ++k) out[y + k] = std::max(out[y + k], 0.f);
        }
  }

 private:
  ConvShape s_;
  ConvPass pass_;
};

}  // namespace

int64_t ConvShape::out_h() const {
  return (h + pad_top + pad_bottom - dilation_h * (kh - 1) - 1) / stride_h + 1;
}

int64_t ConvShape::out_w() const {
  return (w + pad_left + pad_right - dilation_w * (kw - 1) - 1) / stride_w + 1;
}

std::string_view to_string(ConvPass pass) {
  switch (pass) {
    case ConvPass::forward:
      return "forward";
    case ConvPass::backward_data:
      return "backward_data";
    case ConvPass::backward_weights:
      return "backward_weights";
  }
  return "?";
}

std::string_view to_string(ConvAlgorithm algorithm) {
  switch (algorithm) {
    case ConvAlgorithm::direct:
      return "direct";
    case ConvAlgorithm::im2col:
      return "im2col";
    case ConvAlgorithm::pointwise:
      return "pointwise";
    case ConvAlgorithm::winograd2:
      return "winograd2";
    case ConvAlgorithm::winograd4:
      return "winograd4";
  }
  return "?";
}

namespace {

std::unique_ptr<ConvKernel> make_kernel(const ConvShape& shape, ConvPass pass,
                                        ConvAlgorithm algorithm, int threads) {
  const std::vector<ConvAlgorithm> able = conv_candidates(shape, pass, false);
  require(
      std::ranges::count(able, algorithm) == 1, ErrorKind::unsupported,
      "[conv] {} cannot compute this shape: got a {}x{} kernel with stride {}x{}, {} groups; try "
      "{}",
      to_string(algorithm), shape.kh, shape.kw, shape.stride_h, shape.stride_w, shape.groups,
      to_string(choose_conv(shape, pass, false)));
  switch (algorithm) {
    case ConvAlgorithm::winograd2:
      return make_winograd(shape, pass, 2, threads);
    case ConvAlgorithm::winograd4:
      return make_winograd(shape, pass, 4, threads);
    default:
      return std::make_unique<SimpleConv>(shape, pass);
  }
}

}  // namespace

Convolution::Convolution(const ConvShape& shape, ConvPass pass, ConvAlgorithm algorithm,
                         int threads)
    : kernel_(make_kernel(shape, pass, algorithm, threads)) {}
Convolution::~Convolution() = default;
Convolution::Convolution(Convolution&&) noexcept = default;
Convolution& Convolution::operator=(Convolution&&) noexcept = default;

size_t Convolution::workspace_bytes() const { return kernel_->workspace_bytes(); }

void Convolution::forward(ThreadPool& pool, const float* x, const float* w,
                          const float* bias_or_null, bool relu, float* y,
                          std::byte* workspace) const {
  kernel_->run(pool, x, w, y, {bias_or_null, relu}, workspace);
}

void Convolution::backward_data(ThreadPool& pool, const float* dy, const float* w, float* dx,
                                std::byte* workspace) const {
  kernel_->run(pool, dy, w, dx, {}, workspace);
}

void Convolution::backward_weights(ThreadPool& pool, const float* x, const float* dy, float* dw,
                                   std::byte* workspace) const {
  kernel_->run(pool, x, dy, dw, {}, workspace);
}

std::vector<ConvAlgorithm> conv_candidates(const ConvShape& shape, ConvPass, bool exact) {
  std::vector<ConvAlgorithm> all = {ConvAlgorithm::im2col};
  if (!exact && winograd_applies(shape)) {
    all.insert(all.end(), {ConvAlgorithm::winograd2, ConvAlgorithm::winograd4});
  }
  return all;
}

ConvAlgorithm choose_conv(const ConvShape& shape, ConvPass, bool exact) {
  if (!exact && winograd_applies(shape) && shape.c >= 16 && shape.k >= 16) {
    return std::min(shape.out_h(), shape.out_w()) > 2 ? ConvAlgorithm::winograd4
                                                      : ConvAlgorithm::winograd2;
  }
  return ConvAlgorithm::im2col;
}

double conv_flops(const ConvShape& s) {
  return 2.0 * s.n * s.out_h() * s.out_w() * s.kh * s.kw * (s.c / s.groups) * s.k;
}

}  // namespace artel::kernels
