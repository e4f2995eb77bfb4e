// 2-D convolutions on dense NHWC images with HWIO weights [kh][kw][c / groups][k].
//
// A Convolution is prepared once for a shape, a pass and an algorithm. It is immutable: several
// lanes may run one object at the same time, each with its own workspace. The bits of the result
// depend on the shape and the algorithm only, never on the number of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "artel/base/thread_pool.h"

namespace artel::kernels {

struct ConvShape {
  int64_t n, h, w, c, k, kh, kw;
  int64_t stride_h = 1, stride_w = 1;
  int64_t pad_top = 0, pad_left = 0, pad_bottom = 0, pad_right = 0;
  int64_t dilation_h = 1, dilation_w = 1;
  int64_t groups = 1;

  int64_t out_h() const;
  int64_t out_w() const;
};

enum class ConvPass { forward, backward_data, backward_weights };

enum class ConvAlgorithm {
  direct,     // oneDNN
  im2col,     // a product over image patches, read in place
  pointwise,  // 1x1 without padding: a matrix product
  winograd2,  // 3x3 with stride 1: F(2x2, 3x3), 2.25 times fewer multiplications
  winograd4,  // 3x3 with stride 1: F(4x4, 3x3), 4 times fewer, about ten times the rounding error
  depthwise,  // each channel by itself
  bf16,       // oneDNN on operands rounded to bf16, where the processor has it
};

std::string_view to_string(ConvPass pass);
std::string_view to_string(ConvAlgorithm algorithm);

// The operands of one lane: x, w, y (forward), dy, w, dx (backward data) or x, dy, dw.
struct ConvLane {
  const float* first;
  const float* second;
  float* out;
  int64_t images;
};

class Convolution {
 public:
  // Throws when the algorithm cannot compute the shape (see conv_candidates). Of `lanes` lanes of
  // this shape in a batch, the workspace suffices for `together` at once.
  Convolution(const ConvShape& shape, ConvPass pass, ConvAlgorithm algorithm, int threads,
              int lanes = 1, int together = 1);
  ~Convolution();
  Convolution(Convolution&&) noexcept;
  Convolution& operator=(Convolution&&) noexcept;

  size_t workspace_bytes() const;

  // Only the pass given to the constructor may be called. `workspace` has workspace_bytes() bytes,
  // aligned to 64. Outputs are overwritten and must not overlap inputs.
  // Results above `most` become that.
  void forward(ThreadPool& pool, const float* x, const float* w, const float* bias_or_null,
               bool relu, float* y, std::byte* workspace,
               float most = std::numeric_limits<float>::infinity()) const;
  // Also the forward pass of a transposed convolution.
  void backward_data(ThreadPool& pool, const float* dy, const float* w, float* dx,
                     std::byte* workspace) const;
  void backward_weights(ThreadPool& pool, const float* x, const float* dy, float* dw,
                        std::byte* workspace) const;

  // The variant of the algorithm, if it has several. Lanes of different variants have nothing
  // in common.
  std::string_view form() const;
  // True if lanes can run together, each with the bits that it gets alone.
  bool joins() const;
  // Lanes with the same weights: of both passes that give images.
  void run_lanes(ThreadPool& pool, std::span<const ConvLane> lanes, const float* bias_or_null,
                 bool relu, std::byte* workspace,
                 float most = std::numeric_limits<float>::infinity()) const;
  // Gradients of weights, added in the order of a tree (sum_passes.h), into the first lane's.
  void run_sums(ThreadPool& pool, std::span<const ConvLane> lanes, std::span<const int> merges,
                std::byte* workspace) const;

 private:
  void cap(ThreadPool& pool, float* y, int64_t images, float most) const;

  std::unique_ptr<const class ConvKernel> kernel_;
  int64_t images_ = 0, outputs_ = 0;  // of a forward pass; outputs of one image
};

// All f32 algorithms that can compute the pass, for tuning; `exact` leaves out Winograd.
std::vector<ConvAlgorithm> conv_candidates(const ConvShape& shape, ConvPass pass, bool exact);

// The fixed rule: the fastest f32 algorithm for a shape as measured once (docs/decisions/0012), of
// which the batch has `lanes`.
ConvAlgorithm choose_conv(const ConvShape& shape, ConvPass pass, bool exact, int lanes = 1);

// Multiplications and additions of the convolution computed directly, padding included; the same
// for each pass.
double conv_flops(const ConvShape& shape);

}  // namespace artel::kernels
