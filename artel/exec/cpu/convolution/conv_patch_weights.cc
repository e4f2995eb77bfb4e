#include "artel/exec/cpu/convolution/conv_patches.h"

#include <algorithm>
#include <vector>

#include "artel/exec/cpu/convolution/conv_window.h"
#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"
#include "artel/exec/cpu/rows/sum_passes.h"

namespace artel::kernels {
namespace {

// dw = sum over pixels of patch^T dy, over blocks of images whose size is fixed by the shape. All
// threads pack dy; then each takes some channels of one tap: their values at all pixels of the
// block are gathered into panels, read in order by the products with all panels of dy.
class PatchWeights final : public ConvKernel {
 public:
  PatchWeights(const ConvShape& s, int threads, int lanes)
      : s_(s), threads_(threads), lanes_(lanes), pixels_(s.out_h() * s.out_w()) {
    channels_ = std::min<int64_t>(kTaskPanels * panel_width(), s.c);
  }

  size_t workspace_bytes() const override {
    return sizeof(float) * (pass_floats(most_pixels()) +
                            stack_floats(lanes_, s_.n * pixels_ * lanes_, kJointPixels, weights()));
  }

  void run(ThreadPool& pool, const float* x, const float* dy, float* dw, const ConvEpilogue&,
           std::byte* workspace) const override {
    run_lane(pool, {x, dy, dw, s_.n}, dw, reinterpret_cast<float*>(workspace));
  }

  bool joins() const override { return true; }

  void run_sums(ThreadPool& pool, std::span<const ConvLane> lanes, std::span<const int> merges,
                std::byte* workspace) const override {
    auto* memory = reinterpret_cast<float*>(workspace);
    std::vector<int64_t> terms;
    for (const ConvLane& lane : lanes) terms.push_back(lane.images * pixels_);
    run_passes(pool, sum_passes(terms, merges, kJointPixels), weights(), lanes[0].out,
               memory + pass_floats(most_pixels()), [&](const SumPass& pass, float* sum) {
                 if (pass.last - pass.first == 1)
                   run_lane(pool, lanes[pass.first], sum, memory);
                 else
                   run_pass(pool, lanes.subspan(pass.first, pass.last - pass.first),
                            merges_inside(pass, merges), sum, memory);
               });
  }

 private:
  static constexpr int64_t kBlockPixels = 512;
  static constexpr int64_t kJointPixels = 1024;  // of lanes that are added in registers
  static constexpr int64_t kTaskPanels = 3;      // 48 channels: eight tiles of six rows
  static constexpr int64_t kDepth = 256;         // pixels of a product, so that a panel stays in L1

  int64_t weights() const { return s_.kh * s_.kw * s_.c * s_.k; }
  // Images of a block of a lane.
  int64_t block_images(int64_t images) const {
    return std::clamp<int64_t>(kBlockPixels / std::max<int64_t>(1, pixels_), 1,
                               std::max<int64_t>(1, images));
  }
  // At a time: of a block, or of lanes that are added in registers.
  int64_t most_pixels() const {
    const int64_t joint = lanes_ > 1 ? std::min(s_.n * pixels_ * lanes_, kJointPixels) : 0;
    return std::max(block_images(s_.n) * pixels_, joint);
  }
  int64_t pass_floats(int64_t pixels) const {
    return panel_floats(pixels, s_.k) + threads_ * panel_floats(pixels, channels_);
  }

  void run_lane(ThreadPool& pool, const ConvLane& lane, float* dw, float* memory) const {
    if (lane.images == 0) std::fill_n(dw, weights(), 0.f);
    const int64_t block = block_images(lane.images);
    for (int64_t first = 0; first < lane.images; first += block) {
      const ConvLane part = {lane.first + first * s_.h * s_.w * s_.c,
                             lane.second + first * pixels_ * s_.k, dw,
                             std::min(block, lane.images - first)};
      run_block(pool, {&part, 1}, dw, memory,
                [&](const PanelProduct& product) { add_depth_by_depth(product, first > 0); });
    }
  }

  // Lanes that are added in registers, as run_lane and a tree would add them.
  void run_pass(ThreadPool& pool, std::span<const ConvLane> lanes, const std::vector<int>& merges,
                float* dw, float* memory) const {
    std::vector<Segment> segments;
    std::vector<SumCut> cuts;
    int64_t at = 0;
    for (size_t i = 0; i < lanes.size(); ++i) {
      const int64_t block = block_images(lanes[i].images) * pixels_;
      const int64_t pixels = lanes[i].images * pixels_;
      for (int64_t begin = 0; begin < pixels; begin += block)
        for (int64_t from = 0; from < std::min(block, pixels - begin); from += kDepth) {
          const int64_t length = std::min(kDepth, std::min(block, pixels - begin) - from);
          segments.push_back({(at + begin + from) * panel_width(), at + begin + from, length});
          cuts.push_back({std::ssize(segments), begin + from > 0 ? 1 : 0});
        }
      cuts.back().merges += merges[i];
      at += pixels;
    }
    run_block(pool, lanes, dw, memory, [&](PanelProduct product) {
      product.segments = segments;
      product.cuts = cuts;
      multiply_panels(product);
    });
  }

  // All taps and channels of some images, which are packed at once. `multiply` gets the products of
  // some channels, without segments.
  template <class Multiply>
  void run_block(ThreadPool& pool, std::span<const ConvLane> lanes, float* dw, float* gradient,
                 const Multiply& multiply) const {
    const int64_t width = panel_width(), taps = s_.kh * s_.kw, images = images_of(lanes);
    const int64_t pixels = images * pixels_, chunks = divide_up(s_.c, channels_);
    float* slots = gradient + panel_floats(pixels, s_.k);
    for_each_with_slot(pool, threads_, panel_count(s_.k), [&](int64_t, int64_t panel) {
      for_each_lane(lanes, pixels_, 0, pixels,
                    [&](const ConvLane& lane, int64_t, int64_t count, int64_t at) {
                      pack_panels(lane.second + panel * width, s_.k, false, count,
                                  std::min(width, s_.k - panel * width),
                                  gradient + (panel * pixels + at) * width, 0);
                    });
    });
    for_each_with_slot(pool, threads_, taps * chunks, [&](int64_t slot, int64_t task) {
      const int64_t tap = task / chunks, channel = task % chunks * channels_;
      const int64_t channels = std::min(channels_, s_.c - channel);
      float* values = slots + slot * panel_floats(pixels, channels_);
      for_each_lane(lanes, 1, 0, images,
                    [&](const ConvLane& lane, int64_t, int64_t count, int64_t at) {
                      for (int64_t i = 0; i < count; ++i)
                        gather(lane.first + i * s_.h * s_.w * s_.c + channel, tap, channels, pixels,
                               values + (at + i) * pixels_ * width);
                    });
      std::vector<const float*> a(channels);
      std::vector<float*> c(channels);
      for (int64_t i = 0; i < channels; ++i) {
        a[i] = values + i / width * pixels * width + i % width;
        c[i] = dw + (tap * s_.c + channel + i) * s_.k;
      }
      multiply({.a = a,
                .a_step = width,
                .c = c,
                .columns = s_.k,
                .segments = {},
                .panels = gradient,
                .panel_stride = pixels * width});
    });
  }

  // The values of some channels under one tap at all pixels of an image, as panels of all `pixels`.
  void gather(const float* x, int64_t tap, int64_t channels, int64_t pixels, float* out) const {
    const int64_t width = panel_width(), out_w = s_.out_w();
    const int64_t shift = tap % s_.kw * s_.dilation_w - s_.pad_left;
    const int64_t begin = std::clamp<int64_t>(divide_up(-shift, s_.stride_w), 0, out_w);
    const int64_t end = std::clamp(divide_up(s_.w - shift, s_.stride_w), begin, out_w);
    const auto clear = [&](int64_t from, int64_t to) {
      for (int64_t panel = 0; panel < panel_count(channels); ++panel) {
        float* row = out + panel * pixels * width;
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
                  end - begin, channels, out + begin * width, pixels * width);
      clear(end, out_w);
    }
  }

  void add_depth_by_depth(PanelProduct product, bool add) const {
    const int64_t pixels = product.panel_stride / panel_width();
    for (int64_t at = 0; at < pixels; at += kDepth) {
      const Segment segment{at * panel_width(), at, std::min(kDepth, pixels - at)};
      product.segments = {&segment, 1};
      product.accumulate = add || at > 0;
      multiply_panels(product);
    }
  }

  ConvShape s_;
  int threads_, lanes_;
  int64_t pixels_, channels_;
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

std::unique_ptr<ConvKernel> make_patch_weights(const ConvShape& shape, int threads, int lanes) {
  if (shape.c < panel_width()) return std::make_unique<ShortPatchWeights>(shape, threads);
  return std::make_unique<PatchWeights>(shape, threads, lanes);
}

}  // namespace artel::kernels
