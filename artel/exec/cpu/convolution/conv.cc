#include "artel/exec/cpu/convolution/conv.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/exec/cpu/convolution/conv_depthwise.h"
#include "artel/exec/cpu/convolution/conv_kernel.h"
#include "artel/exec/cpu/convolution/conv_onednn.h"
#include "artel/exec/cpu/convolution/conv_part.h"
#include "artel/exec/cpu/convolution/conv_patches.h"
#include "artel/exec/cpu/convolution/conv_pointwise.h"
#include "artel/exec/cpu/convolution/conv_positions.h"
#include "artel/exec/cpu/convolution/winograd.h"

namespace artel::kernels {
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
    case ConvAlgorithm::depthwise:
      return "depthwise";
    case ConvAlgorithm::bf16:
      return "bf16";
  }
  return "?";
}

namespace {

std::unique_ptr<ConvKernel> make_kernel(const ConvShape& shape, ConvPass pass,
                                        ConvAlgorithm algorithm, int threads, int lanes,
                                        int together) {
  const std::vector<ConvAlgorithm> able = conv_candidates(shape, pass, false);
  require(
      std::ranges::count(able, algorithm) == 1 || algorithm == ConvAlgorithm::bf16,
      ErrorKind::unsupported,
      "[conv] {} cannot compute this shape: got a {}x{} kernel with stride {}x{}, {} groups; try "
      "{}",
      to_string(algorithm), shape.kh, shape.kw, shape.stride_h, shape.stride_w, shape.groups,
      to_string(choose_conv(shape, pass, false)));
  switch (algorithm) {
    case ConvAlgorithm::direct:
    case ConvAlgorithm::bf16: {
      const auto make = [&](const ConvShape& s) {
        return make_onednn(s, pass, algorithm == ConvAlgorithm::bf16, threads, lanes);
      };
      return reads_part(shape) ? make_on_part(shape, pass, make) : make(shape);
    }
    case ConvAlgorithm::im2col:
      if (positions_pay(shape, lanes)) return make_positions(shape, pass, threads, together);
      if (pass == ConvPass::backward_weights) return make_patch_weights(shape, threads, together);
      return make_patch_image(shape, pass == ConvPass::backward_data, threads);
    case ConvAlgorithm::pointwise:
      return make_pointwise(shape, pass, threads, lanes, together);
    case ConvAlgorithm::depthwise:
      return make_depthwise(shape);
    case ConvAlgorithm::winograd2:
      return make_winograd(shape, pass, 2, threads, together);
    case ConvAlgorithm::winograd4:
      return make_winograd(shape, pass, 4, threads, together);
  }
  return nullptr;
}

}  // namespace

Convolution::Convolution(const ConvShape& shape, ConvPass pass, ConvAlgorithm algorithm,
                         int threads, int lanes, int together)
    : kernel_(make_kernel(shape, pass, algorithm, threads, lanes, together)),
      images_(shape.n),
      outputs_(shape.out_h() * shape.out_w() * shape.k) {}
Convolution::~Convolution() = default;
Convolution::Convolution(Convolution&&) noexcept = default;
Convolution& Convolution::operator=(Convolution&&) noexcept = default;

size_t Convolution::workspace_bytes() const { return kernel_->workspace_bytes(); }

void Convolution::forward(ThreadPool& pool, const float* x, const float* w,
                          const float* bias_or_null, bool relu, float* y, std::byte* workspace,
                          float most) const {
  kernel_->run(pool, x, w, y, {bias_or_null, relu, most}, workspace);
  cap(pool, y, images_, most);
}

// For kernels that do not apply the cap themselves.
void Convolution::cap(ThreadPool& pool, float* y, int64_t images, float most) const {
  if (most == std::numeric_limits<float>::infinity() || kernel_->caps()) return;
  parallel_for(pool, images * outputs_, 4096, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) y[i] = y[i] > most ? most : y[i];
  });
}

std::string_view Convolution::form() const { return kernel_->form(); }

bool Convolution::joins() const { return kernel_->joins(); }

void Convolution::run_lanes(ThreadPool& pool, std::span<const ConvLane> lanes,
                            const float* bias_or_null, bool relu, std::byte* workspace,
                            float most) const {
  kernel_->run_lanes(pool, lanes, {bias_or_null, relu, most}, workspace);
  for (const ConvLane& lane : lanes) cap(pool, lane.out, lane.images, most);
}

void Convolution::run_sums(ThreadPool& pool, std::span<const ConvLane> lanes,
                           std::span<const int> merges, std::byte* workspace) const {
  kernel_->run_sums(pool, lanes, merges, workspace);
}

void Convolution::backward_data(ThreadPool& pool, const float* dy, const float* w, float* dx,
                                std::byte* workspace) const {
  kernel_->run(pool, dy, w, dx, {}, workspace);
}

void Convolution::backward_weights(ThreadPool& pool, const float* x, const float* dy, float* dw,
                                   std::byte* workspace) const {
  kernel_->run(pool, x, dy, dw, {}, workspace);
}

std::vector<ConvAlgorithm> conv_candidates(const ConvShape& shape, ConvPass pass, bool exact) {
  std::vector<ConvAlgorithm> all = {ConvAlgorithm::direct};
  if (depthwise_applies(shape, pass)) all.push_back(ConvAlgorithm::depthwise);
  if (shape.groups == 1) all.push_back(ConvAlgorithm::im2col);
  if (pointwise_applies(shape)) all.push_back(ConvAlgorithm::pointwise);
  if (!exact && winograd_applies(shape)) {
    all.insert(all.end(), {ConvAlgorithm::winograd2, ConvAlgorithm::winograd4});
  }
  return all;
}

ConvAlgorithm choose_conv(const ConvShape& shape, ConvPass pass, bool exact, int lanes) {
  if (depthwise_applies(shape, pass)) return ConvAlgorithm::depthwise;
  if (shape.groups > 1) return ConvAlgorithm::direct;
  if (pointwise_applies(shape)) return ConvAlgorithm::pointwise;
  const bool tiny_map = std::min(shape.out_h(), shape.out_w()) <= 2;
  if (!exact && winograd_applies(shape) && std::min(shape.c, shape.k) >= 16) {
    if (!tiny_map) return ConvAlgorithm::winograd4;
    if (shape.n * lanes < 8) return ConvAlgorithm::winograd2;
  }
  // Our vectors run over output channels and are mostly empty when there are few.
  const bool few_outputs = (pass == ConvPass::backward_data ? shape.c : shape.k) < 8;
  return few_outputs ? ConvAlgorithm::direct : ConvAlgorithm::im2col;
}

double conv_flops(const ConvShape& s) {
  const int64_t channels = s.c / s.groups;
  return 2.0 * s.n * s.out_h() * s.out_w() * s.kh * s.kw * channels * s.k;
}

}  // namespace artel::kernels
