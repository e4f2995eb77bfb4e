#include "artel/exec/kernels/conv_positions.h"

#include <algorithm>
#include <vector>

#include "artel/exec/kernels/gemm_panels.h"
#include "artel/exec/kernels/slots.h"

namespace artel::kernels {
namespace {

// Calls visit(in position, tap, out position) for each tap inside the map.
template <class Visit>
void for_each_link(const ConvShape& s, const Visit& visit) {
  for (int64_t out = 0; out < s.out_h() * s.out_w(); ++out) {
    for (int64_t tap = 0; tap < s.kh * s.kw; ++tap) {
      const int64_t y = out / s.out_w() * s.stride_h + tap / s.kw * s.dilation_h - s.pad_top;
      const int64_t x = out % s.out_w() * s.stride_w + tap % s.kw * s.dilation_w - s.pad_left;
      if (y >= 0 && y < s.h && x >= 0 && x < s.w) visit(y * s.w + x, tap, out);
    }
  }
}

// Forward and backward data. The input is copied to [position][image][channel]; each task packs the
// weights of one panel of output channels, which stay in the L2 cache for all positions.
class PositionImage final : public ConvKernel {
 public:
  PositionImage(const ConvShape& s, bool backward, int threads)
      : images_(s.n), threads_(threads), taps_(s.kh * s.kw), backward_(backward), c_(s.c), k_(s.k) {
    in_channels_ = backward ? k_ : c_;
    out_channels_ = backward ? c_ : k_;
    in_positions_ = s.h * s.w;
    out_positions_ = s.out_h() * s.out_w();
    if (backward) std::swap(in_positions_, out_positions_);
    row_floats_ = aligned_floats(in_channels_) + 16;  // keeps rows out of each other's cache sets
    segments_.resize(out_positions_);
    for_each_link(s, [&](int64_t x, int64_t tap, int64_t y) {
      segments_[backward ? x : y].push_back(
          {(backward ? y : x) * images_ * row_floats_, tap * in_channels_, in_channels_});
    });
  }

  size_t workspace_bytes() const override {
    return sizeof(float) * (in_floats() + threads_ * panel_floats());
  }

  void run(ThreadPool& pool, const float* in, const float* weights, float* out,
           const ConvEpilogue& epilogue, std::byte* workspace) const override {
    float* rows = reinterpret_cast<float*>(workspace);
    for_each_with_slot(pool, threads_, in_positions_, [&](int64_t, int64_t position) {
      for (int64_t i = 0; i < images_; ++i) {
        std::copy_n(in + (i * in_positions_ + position) * in_channels_, in_channels_,
                    rows + (position * images_ + i) * row_floats_);
      }
    });
    std::vector<const float*> a(images_);
    for (int64_t i = 0; i < images_; ++i) a[i] = rows + i * row_floats_;
    for_each_with_slot(
        pool, threads_, panel_count(out_channels_), [&](int64_t slot, int64_t panel) {
          float* packed = rows + in_floats() + slot * panel_floats();
          const int64_t column = panel * panel_width();
          const int64_t columns = std::min(panel_width(), out_channels_ - column);
          pack_weights(weights, column, columns, packed);
          std::vector<float*> c(images_);
          for (int64_t position = 0; position < out_positions_; ++position) {
            for (int64_t i = 0; i < images_; ++i) {
              c[i] = out + (i * out_positions_ + position) * out_channels_ + column;
            }
            multiply_panels({.a = a,
                             .c = c,
                             .columns = columns,
                             .segments = segments_[position],
                             .panels = packed,
                             .bias = epilogue.bias ? epilogue.bias + column : nullptr,
                             .relu = epilogue.relu});
          }
        });
  }

 private:
  int64_t in_floats() const { return in_positions_ * images_ * row_floats_; }
  int64_t panel_floats() const { return taps_ * in_channels_ * panel_width(); }

  void pack_weights(const float* weights, int64_t column, int64_t columns, float* packed) const {
    if (!backward_) {
      pack_panels(weights + column, k_, false, taps_ * c_, columns, packed, 0);
      return;
    }
    for (int64_t tap = 0; tap < taps_; ++tap) {
      pack_panels(weights + (tap * c_ + column) * k_, k_, true, k_, columns,
                  packed + tap * k_ * panel_width(), 0);
    }
  }

  int64_t images_;
  int threads_;
  int64_t taps_;
  bool backward_;
  int64_t c_, k_, in_channels_, out_channels_, in_positions_, out_positions_, row_floats_;
  std::vector<std::vector<Segment>> segments_;  // of each output position
};

// Backward weights: for each tap the sum over its pairs of positions of x^T dy.
class PositionWeights final : public ConvKernel {
 public:
  PositionWeights(const ConvShape& s, int threads)
      : s_(s), threads_(threads), segments_(s.kh * s.kw) {
    for_each_link(s, [&](int64_t x, int64_t tap, int64_t y) {
      segments_[tap].push_back({x * position_floats(), y * s.n, s.n});
    });
  }

  size_t workspace_bytes() const override {
    return sizeof(float) * (s_.h * s_.w * position_floats() + threads_ * slot_floats());
  }

  void run(ThreadPool& pool, const float* x, const float* dy, float* dw, const ConvEpilogue&,
           std::byte* workspace) const override {
    const int64_t width = panel_width(), in_positions = s_.h * s_.w;
    const int64_t out_positions = s_.out_h() * s_.out_w();
    float* inputs = reinterpret_cast<float*>(workspace);
    for_each_with_slot(pool, threads_, in_positions, [&](int64_t, int64_t position) {
      pack_panels(x + position * s_.c, in_positions * s_.c, false, s_.n, s_.c,
                  inputs + position * position_floats(), s_.n * width);
    });
    std::vector<const float*> a(s_.c);
    for (int64_t i = 0; i < s_.c; ++i) a[i] = inputs + i / width * s_.n * width + i % width;
    for_each_with_slot(pool, threads_, panel_count(s_.k), [&](int64_t slot, int64_t panel) {
      float* packed = inputs + in_positions * position_floats() + slot * slot_floats();
      const int64_t column = panel * width, columns = std::min(width, s_.k - column);
      for (int64_t position = 0; position < out_positions; ++position) {
        pack_panels(dy + position * s_.k + column, out_positions * s_.k, false, s_.n, columns,
                    packed + position * s_.n * width, 0);
      }
      std::vector<float*> c(s_.c);
      for (size_t tap = 0; tap < segments_.size(); ++tap) {
        for (int64_t i = 0; i < s_.c; ++i) c[i] = dw + (tap * s_.c + i) * s_.k + column;
        multiply_panels({.a = a,
                         .a_step = width,
                         .c = c,
                         .columns = columns,
                         .segments = segments_[tap],
                         .panels = packed});
      }
    });
  }

 private:
  int64_t position_floats() const { return panel_floats(s_.n, s_.c); }
  int64_t slot_floats() const { return s_.out_h() * s_.out_w() * s_.n * panel_width(); }

  ConvShape s_;
  int threads_;
  std::vector<std::vector<Segment>> segments_;  // of each tap
};

}  // namespace

bool positions_pay(const ConvShape& s) {
  return s.n >= 8 && std::min(s.h * s.w, s.out_h() * s.out_w()) <= 16 && s.h * s.w <= 256 &&
         s.c >= 16 && s.k >= 16;
}

std::unique_ptr<ConvKernel> make_positions(const ConvShape& shape, ConvPass pass, int threads) {
  if (pass == ConvPass::backward_weights) return std::make_unique<PositionWeights>(shape, threads);
  return std::make_unique<PositionImage>(shape, pass == ConvPass::backward_data, threads);
}

}  // namespace artel::kernels
