#include "artel/exec/cpu/convolution/conv_positions.h"

#include <algorithm>
#include <vector>

#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"
#include "artel/exec/cpu/rows/sum_passes.h"

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
  PositionImage(const ConvShape& s, bool backward, int threads, int lanes)
      : images_(s.n),
        most_(s.n * lanes),
        threads_(threads),
        taps_(s.kh * s.kw),
        backward_(backward),
        c_(s.c),
        k_(s.k) {
    in_channels_ = backward ? k_ : c_;
    out_channels_ = backward ? c_ : k_;
    in_positions_ = s.h * s.w;
    out_positions_ = s.out_h() * s.out_w();
    if (backward) std::swap(in_positions_, out_positions_);
    row_floats_ = aligned_floats(in_channels_) + 16;  // keeps rows out of each other's cache sets
    segments_.resize(out_positions_);
    for_each_link(s, [&](int64_t x, int64_t tap, int64_t y) {
      segments_[backward ? x : y].push_back(
          {(backward ? y : x) * most_ * row_floats_, tap * in_channels_, in_channels_});
    });
  }

  size_t workspace_bytes() const override {
    return sizeof(float) * (in_floats() + threads_ * panel_floats());
  }

  void run(ThreadPool& pool, const float* in, const float* weights, float* out,
           const ConvEpilogue& epilogue, std::byte* workspace) const override {
    const ConvLane lane = {in, weights, out, images_};
    run_lanes(pool, {&lane, 1}, epilogue, workspace);
  }

  std::string_view form() const override { return "positions"; }
  bool joins() const override { return true; }

  void run_lanes(ThreadPool& pool, std::span<const ConvLane> lanes, const ConvEpilogue& epilogue,
                 std::byte* workspace) const override {
    float* rows = reinterpret_cast<float*>(workspace);
    const int64_t images = images_of(lanes);
    std::vector<const float*> a(images), in(images);
    std::vector<float*> out(images);
    for_each_lane(lanes, 1, 0, images,
                  [&](const ConvLane& lane, int64_t, int64_t count, int64_t at) {
                    for (int64_t i = 0; i < count; ++i) {
                      in[at + i] = lane.first + i * in_positions_ * in_channels_;
                      out[at + i] = lane.out + i * out_positions_ * out_channels_;
                    }
                  });
    for (int64_t i = 0; i < images; ++i) a[i] = rows + i * row_floats_;
    for_each_with_slot(pool, threads_, in_positions_, [&](int64_t, int64_t position) {
      for (int64_t i = 0; i < images; ++i)
        std::copy_n(in[i] + position * in_channels_, in_channels_,
                    rows + (position * most_ + i) * row_floats_);
    });
    for_each_with_slot(
        pool, threads_, panel_count(out_channels_), [&](int64_t slot, int64_t panel) {
          float* packed = rows + in_floats() + slot * panel_floats();
          const int64_t column = panel * panel_width();
          const int64_t columns = std::min(panel_width(), out_channels_ - column);
          pack_weights(lanes[0].second, column, columns, packed);
          std::vector<float*> c(images);
          for (int64_t position = 0; position < out_positions_; ++position) {
            for (int64_t i = 0; i < images; ++i) c[i] = out[i] + position * out_channels_ + column;
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
  int64_t in_floats() const { return in_positions_ * most_ * row_floats_; }
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

  int64_t images_, most_;  // of a lane; of all lanes that may run at once
  int threads_;
  int64_t taps_;
  bool backward_;
  int64_t c_, k_, in_channels_, out_channels_, in_positions_, out_positions_, row_floats_;
  std::vector<std::vector<Segment>> segments_;  // of each output position
};

// Backward weights: for each tap the sum over its pairs of positions of x^T dy.
class PositionWeights final : public ConvKernel {
 public:
  PositionWeights(const ConvShape& s, int threads, int lanes)
      : s_(s), threads_(threads), lanes_(lanes), links_(s.kh * s.kw) {
    for_each_link(s, [&](int64_t x, int64_t tap, int64_t y) { links_[tap].push_back({x, y}); });
  }

  size_t workspace_bytes() const override {
    const int64_t images = std::max(s_.n, std::min(s_.n * lanes_, kJointImages));
    return sizeof(float) *
           (pass_floats(images) + stack_floats(lanes_, s_.n * lanes_, kJointImages, weights()));
  }

  void run(ThreadPool& pool, const float* x, const float* dy, float* dw, const ConvEpilogue&,
           std::byte* workspace) const override {
    const ConvLane lane = {x, dy, dw, s_.n};
    const int merges = 0;
    run_pass(pool, {&lane, 1}, {&merges, 1}, dw, reinterpret_cast<float*>(workspace));
  }

  std::string_view form() const override { return "positions"; }
  bool joins() const override { return true; }

  void run_sums(ThreadPool& pool, std::span<const ConvLane> lanes, std::span<const int> merges,
                std::byte* workspace) const override {
    auto* memory = reinterpret_cast<float*>(workspace);
    std::vector<int64_t> terms;
    for (const ConvLane& lane : lanes) terms.push_back(lane.images);
    float* stack = memory + pass_floats(std::max(s_.n, std::min(s_.n * lanes_, kJointImages)));
    run_passes(pool, sum_passes(terms, merges, kJointImages), weights(), lanes[0].out, stack,
               [&](const SumPass& pass, float* sum) {
                 run_pass(pool, lanes.subspan(pass.first, pass.last - pass.first),
                          merges_inside(pass, merges), sum, memory);
               });
  }

 private:
  static constexpr int64_t kJointImages = 128;  // of lanes that are added in registers

  struct Link {
    int64_t x, y;
  };

  int64_t weights() const { return s_.kh * s_.kw * s_.c * s_.k; }
  int64_t slot_floats(int64_t images) const {
    return s_.out_h() * s_.out_w() * images * panel_width();
  }
  int64_t pass_floats(int64_t images) const {
    return s_.h * s_.w * panel_floats(images, s_.c) + threads_ * slot_floats(images);
  }

  void run_pass(ThreadPool& pool, std::span<const ConvLane> lanes, std::span<const int> merges,
                float* dw, float* inputs) const {
    const int64_t width = panel_width(), in_positions = s_.h * s_.w;
    const int64_t out_positions = s_.out_h() * s_.out_w(), images = images_of(lanes);
    const int64_t position_floats = panel_floats(images, s_.c);
    for_each_with_slot(pool, threads_, in_positions, [&](int64_t, int64_t position) {
      for_each_lane(
          lanes, 1, 0, images, [&](const ConvLane& lane, int64_t, int64_t count, int64_t at) {
            pack_panels(lane.first + position * s_.c, in_positions * s_.c, false, count, s_.c,
                        inputs + position * position_floats + at * width, images * width);
          });
    });
    std::vector<std::vector<Segment>> segments(links_.size());
    std::vector<std::vector<SumCut>> cuts(links_.size());
    for (size_t tap = 0; tap < links_.size(); ++tap) {
      int64_t at = 0;
      for (size_t i = 0; i < lanes.size(); at += lanes[i].images, ++i) {
        for (const Link& link : links_[tap])
          segments[tap].push_back(
              {link.x * position_floats + at * width, link.y * images + at, lanes[i].images});
        cuts[tap].push_back({std::ssize(segments[tap]), merges[i]});
      }
      if (lanes.size() == 1) cuts[tap].clear();
    }
    std::vector<const float*> a(s_.c);
    for (int64_t i = 0; i < s_.c; ++i) a[i] = inputs + i / width * images * width + i % width;
    for_each_with_slot(pool, threads_, panel_count(s_.k), [&](int64_t slot, int64_t panel) {
      float* packed = inputs + in_positions * position_floats + slot * slot_floats(images);
      const int64_t column = panel * width, columns = std::min(width, s_.k - column);
      for (int64_t position = 0; position < out_positions; ++position) {
        for_each_lane(
            lanes, 1, 0, images, [&](const ConvLane& lane, int64_t, int64_t count, int64_t at) {
              pack_panels(lane.second + position * s_.k + column, out_positions * s_.k, false,
                          count, columns, packed + (position * images + at) * width, 0);
            });
      }
      std::vector<float*> c(s_.c);
      for (size_t tap = 0; tap < links_.size(); ++tap) {
        for (int64_t i = 0; i < s_.c; ++i) c[i] = dw + (tap * s_.c + i) * s_.k + column;
        multiply_panels({.a = a,
                         .a_step = width,
                         .c = c,
                         .columns = columns,
                         .segments = segments[tap],
                         .cuts = cuts[tap],
                         .panels = packed});
      }
    });
  }

  ConvShape s_;
  int threads_, lanes_;
  std::vector<std::vector<Link>> links_;  // of each tap
};

}  // namespace

bool positions_pay(const ConvShape& s, int lanes) {
  return s.n * lanes >= 8 && std::min(s.h * s.w, s.out_h() * s.out_w()) <= 16 && s.h * s.w <= 256 &&
         s.c >= 16 && s.k >= 16;
}

std::unique_ptr<ConvKernel> make_positions(const ConvShape& shape, ConvPass pass, int threads,
                                           int lanes) {
  if (pass == ConvPass::backward_weights)
    return std::make_unique<PositionWeights>(shape, threads, lanes);
  return std::make_unique<PositionImage>(shape, pass == ConvPass::backward_data, threads, lanes);
}

}  // namespace artel::kernels
