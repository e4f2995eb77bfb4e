#include "artel/exec/kernels/conv_patches.h"

#include <algorithm>
#include <vector>

#include "artel/exec/kernels/conv_window.h"
#include "artel/exec/kernels/gemm_panels.h"
#include "artel/exec/kernels/slots.h"

namespace artel::kernels {
namespace {

// dw = sum over pixels of patch^T dy, over blocks of images whose size is fixed by the shape. All
// threads pack dy; then each takes some channels of one tap: their values at all pixels of the
// block are gathered into panels, read in order by the products with all panels of dy.
class PatchWeights final : public ConvKernel {
 public:
  PatchWeights(const ConvShape& s, int threads)
      : s_(s), threads_(threads), pixels_(s.out_h() * s.out_w()) {
    block_images_ = std::clamp<int64_t>(kBlockPixels / std::max<int64_t>(1, pixels_), 1,
                                        std::max<int64_t>(1, s.n));
    channels_ = std::min<int64_t>(kTaskPanels * panel_width(), s.c);
  }

  size_t workspace_bytes() const override {
    return sizeof(float) * (panel_floats(block_pixels(), s_.k) +
                            threads_ * panel_floats(block_pixels(), channels_));
  }

  void run(ThreadPool& pool, const float* x, const float* dy, float* dw, const ConvEpilogue&,
           std::byte* workspace) const override {
    const int64_t width = panel_width(), taps = s_.kh * s_.kw;
    const int64_t chunks = divide_up(s_.c, channels_);
    float* gradient = reinterpret_cast<float*>(workspace);
    float* slots = gradient + panel_floats(block_pixels(), s_.k);
    if (s_.n == 0) std::fill_n(dw, taps * s_.c * s_.k, 0.f);
    for (int64_t first = 0; first < s_.n; first += block_images_) {
      const int64_t images = std::min(block_images_, s_.n - first);
      for_each_with_slot(pool, threads_, panel_count(s_.k), [&](int64_t, int64_t panel) {
        pack_panels(dy + first * pixels_ * s_.k + panel * width, s_.k, false, images * pixels_,
                    std::min(width, s_.k - panel * width),
                    gradient + panel * block_pixels() * width, 0);
      });
      for_each_with_slot(pool, threads_, taps * chunks, [&](int64_t slot, int64_t task) {
        const int64_t tap = task / chunks, channel = task % chunks * channels_;
        const int64_t channels = std::min(channels_, s_.c - channel);
        float* values = slots + slot * panel_floats(block_pixels(), channels_);
        for (int64_t i = 0; i < images; ++i) {
          gather(x + (first + i) * s_.h * s_.w * s_.c + channel, tap, channels,
                 values + i * pixels_ * width);
        }
        accumulate(values, gradient, images * pixels_, channels, first > 0,
                   dw + (tap * s_.c + channel) * s_.k);
      });
    }
  }

 private:
  static constexpr int64_t kBlockPixels = 512;
  static constexpr int64_t kTaskPanels = 3;  // 48 channels: eight tiles of six rows
  static constexpr int64_t kDepth = 256;     // pixels of a product, so that a panel stays in L1

  int64_t block_pixels() const { return block_images_ * pixels_; }

  // The values of some channels under one tap at all pixels of an image, as panels.
  void gather(const float* x, int64_t tap, int64_t channels, float* out) const {
    const int64_t width = panel_width(), out_w = s_.out_w();
    const int64_t shift = tap % s_.kw * s_.dilation_w - s_.pad_left;
    const int64_t begin = std::clamp<int64_t>(divide_up(-shift, s_.stride_w), 0, out_w);
    const int64_t end = std::clamp(divide_up(s_.w - shift, s_.stride_w), begin, out_w);
    const auto clear = [&](int64_t from, int64_t to) {
      for (int64_t panel = 0; panel < panel_count(channels); ++panel) {
        float* row = out + panel * block_pixels() * width;
        std::fill(row + from * width, row + to * width, 0.f);
      }
    };
    for (int64_t row = 0; row < s_.out_h(); ++row, out += out_w * width) {
      const int64_t y = row * s_.stride_h + tap / s_.kw * s_.dilation_h - s_.pad_top;
      if (y < 0 || y >= s_.h) {
        clear(0, out_w);
        continue;
      }
      clear(0, begin);
      pack_panels(x + (y * s_.w + begin * s_.stride_w + shift) * s_.c, s_.stride_w * s_.c, false,
                  end - begin, channels, out + begin * width, block_pixels() * width);
      clear(end, out_w);
    }
  }

  void accumulate(const float* values, const float* gradient, int64_t pixels, int64_t channels,
                  bool add, float* dw) const {
    const int64_t width = panel_width();
    std::vector<const float*> a(channels);
    std::vector<float*> c(channels);
    for (int64_t i = 0; i < channels; ++i) {
      a[i] = values + i / width * block_pixels() * width + i % width;
      c[i] = dw + i * s_.k;
    }
    for (int64_t at = 0; at < pixels; at += kDepth) {
      const Segment segment{at * width, at, std::min(kDepth, pixels - at)};
      multiply_panels({.a = a,
                       .a_step = width,
                       .c = c,
                       .columns = s_.k,
                       .segments = {&segment, 1},
                       .panels = gradient,
                       .panel_stride = block_pixels() * width,
                       .accumulate = add || at > 0});
    }
  }

  ConvShape s_;
  int threads_;
  int64_t pixels_, block_images_, channels_;
};

// The same for few input channels, whose patches are best read in place from padded copies of the
// images: they are small enough for the L1 cache. Each thread takes rows and panels of dw.
class ShortPatchWeights final : public ConvKernel {
 public:
  ShortPatchWeights(const ConvShape& s, int threads) : s_(s), threads_(threads) {
    padded_h_ = s.h + s.pad_top + s.pad_bottom;
    padded_w_ = s.w + s.pad_left + s.pad_right;
    pixels_ = s.out_h() * s.out_w();
    const int64_t floats = padded_h_ * padded_w_ * s.c + pixels_ * panel_floats(1, s.k);
    block_images_ = std::clamp<int64_t>(kBlockFloats / floats, 1, std::max<int64_t>(1, s.n));
  }

  size_t workspace_bytes() const override {
    return sizeof(float) * (image_floats() * block_images_ + panel_stride() * panel_count(s_.k));
  }

  void run(ThreadPool& pool, const float* x, const float* dy, float* dw, const ConvEpilogue&,
           std::byte* workspace) const override {
    const int64_t width = panel_width(), depth = s_.kh * s_.kw * s_.c;
    float* images = reinterpret_cast<float*>(workspace);
    float* panels = images + image_floats() * block_images_;
    if (s_.n == 0) std::fill_n(dw, depth * s_.k, 0.f);
    const int64_t row_step =
        std::min<int64_t>(kTaskRows, divide_up(divide_up(depth, threads_), 6) * 6);
    const int64_t row_tasks = divide_up(depth, row_step);
    for (int64_t first = 0; first < s_.n; first += block_images_) {
      const int64_t count = std::min(block_images_, s_.n - first);
      for_each_with_slot(pool, threads_, count, [&](int64_t, int64_t i) {
        copy_window(x + (first + i) * s_.h * s_.w * s_.c, s_.h, s_.w, s_.c,
                    {-s_.pad_top, padded_h_, -s_.pad_left, padded_w_}, images + i * image_floats());
        pack_panels(dy + (first + i) * pixels_ * s_.k, s_.k, false, pixels_, s_.k,
                    panels + i * pixels_ * width, panel_stride());
      });
      const std::vector<Segment> segments = segments_of(count);
      for_each_with_slot(pool, threads_, row_tasks * panel_count(s_.k), [&](int64_t, int64_t task) {
        const int64_t row = task % row_tasks * row_step, column = task / row_tasks * width;
        multiply_rows(images, panels + task / row_tasks * panel_stride(), segments, row,
                      std::min(row_step, depth - row), column, first > 0, dw);
      });
    }
  }

 private:
  static constexpr int64_t kBlockFloats = 256 * 1024;
  static constexpr int64_t kTaskRows = 96;

  int64_t image_floats() const { return aligned_floats(padded_h_ * padded_w_ * s_.c); }
  int64_t panel_stride() const { return block_images_ * pixels_ * panel_width(); }

  // One segment for each row of output pixels.
  std::vector<Segment> segments_of(int64_t images) const {
    std::vector<Segment> segments;
    for (int64_t i = 0; i < images; ++i) {
      for (int64_t y = 0; y < s_.out_h(); ++y) {
        segments.push_back({i * image_floats() + y * s_.stride_h * padded_w_ * s_.c,
                            i * pixels_ + y * s_.out_w(), s_.out_w()});
      }
    }
    return segments;
  }

  void multiply_rows(const float* images, const float* panel, const std::vector<Segment>& segments,
                     int64_t row, int64_t rows, int64_t column, bool add, float* dw) const {
    std::vector<const float*> a(rows);
    std::vector<float*> c(rows);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t channel = (row + i) % s_.c, tap = (row + i) / s_.c;
      const int64_t y = tap / s_.kw * s_.dilation_h, x = tap % s_.kw * s_.dilation_w;
      a[i] = images + (y * padded_w_ + x) * s_.c + channel;
      c[i] = dw + (row + i) * s_.k + column;
    }
    multiply_panels({.a = a,
                     .a_step = s_.stride_w * s_.c,
                     .c = c,
                     .columns = std::min(panel_width(), s_.k - column),
                     .segments = segments,
                     .panels = panel,
                     .accumulate = add});
  }

  ConvShape s_;
  int threads_;
  int64_t padded_h_, padded_w_, pixels_, block_images_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_patch_weights(const ConvShape& shape, int threads) {
  if (shape.c < panel_width()) return std::make_unique<ShortPatchWeights>(shape, threads);
  return std::make_unique<PatchWeights>(shape, threads);
}

}  // namespace artel::kernels
