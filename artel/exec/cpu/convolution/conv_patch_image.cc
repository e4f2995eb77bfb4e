#include "artel/exec/cpu/convolution/conv_patches.h"

#include <algorithm>
#include <vector>

#include "artel/exec/cpu/convolution/conv_window.h"
#include "artel/exec/cpu/elementwise/slots.h"
#include "artel/exec/cpu/matmul/gemm_panels.h"

namespace artel::kernels {
namespace {

constexpr int64_t kBandFloats = 32 * 1024;  // of copied input: a quarter of the L2 cache

// Joins segments that continue each other.
void append(std::vector<Segment>& segments, const Segment& next) {
  if (!segments.empty()) {
    Segment& last = segments.back();
    if (last.a + last.length == next.a && last.b + last.length == next.b) {
      last.length += next.length;
      return;
    }
  }
  segments.push_back(next);
}

// One axis of the gather form out[q * out_step + offset] += in[q * in_step + tap shift].
//
// Forward: one phase, in_step = stride. Backward data: output rows of one remainder modulo the
// stride form a phase; only some taps reach it, and neighbours in a phase read neighbouring inputs.
struct Tap {
  int64_t index, shift;
};

struct Phase {
  int64_t offset;
  std::vector<Tap> taps;
};

struct Axis {
  int64_t in, out;  // sizes
  int64_t in_step, out_step;
  int64_t begin, end;  // q
  int64_t least_shift, most_shift;
  std::vector<Phase> phases;
};

Axis forward_axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                  int64_t pad) {
  Axis axis{in, out, stride, 1, 0, out, -pad, dilation * (kernel - 1) - pad, {{0, {}}}};
  for (int64_t i = 0; i < kernel; ++i) axis.phases[0].taps.push_back({i, i * dilation - pad});
  return axis;
}

// in and out are those of the gradient: dy and dx. The taps are in reverse order, as their weights
// are packed, so that shifts ascend.
Axis backward_axis(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation,
                   int64_t pad) {
  Axis axis{in, out, 1, stride, pad / stride, (out - 1 + pad) / stride + 1, 0, 0, {}};
  for (int64_t p = 0; p < stride; ++p) {
    Phase phase{p - pad, {}};
    for (int64_t i = kernel - 1; i >= 0; --i) {
      if ((i * dilation - p) % stride != 0) continue;
      phase.taps.push_back({kernel - 1 - i, -(i * dilation - p) / stride});
      axis.least_shift = std::min(axis.least_shift, phase.taps.back().shift);
    }
    axis.phases.push_back(std::move(phase));
  }
  return axis;
}

// Both the forward pass and the gradient of the input. Each task is a band of output rows.
class PatchImage final : public ConvKernel {
 public:
  PatchImage(const ConvShape& s, bool backward, int threads)
      : images_(s.n), threads_(threads), taps_(s.kh * s.kw), backward_(backward), c_(s.c), k_(s.k) {
    if (backward) {
      rows_ = backward_axis(s.out_h(), s.h, s.kh, s.stride_h, s.dilation_h, s.pad_top);
      columns_ = backward_axis(s.out_w(), s.w, s.kw, s.stride_w, s.dilation_w, s.pad_left);
    } else {
      rows_ = forward_axis(s.h, s.out_h(), s.kh, s.stride_h, s.dilation_h, s.pad_top);
      columns_ = forward_axis(s.w, s.out_w(), s.kw, s.stride_w, s.dilation_w, s.pad_left);
    }
    in_channels_ = backward ? k_ : c_;
    out_channels_ = backward ? c_ : k_;
    first_column_ = columns_.begin * columns_.in_step + columns_.least_shift;
    window_columns_ =
        (columns_.end - 1) * columns_.in_step + columns_.most_shift + 1 - first_column_;
    const int64_t row_floats = rows_.in_step * window_columns_ * in_channels_;
    const int64_t all = std::max<int64_t>(1, rows_.end - rows_.begin);
    const int64_t bands = divide_up(all, std::clamp<int64_t>(kBandFloats / row_floats, 1, all));
    band_rows_ = divide_up(all, bands);
    for (const Phase& row : rows_.phases) {
      for (const Phase& column : columns_.phases) {
        std::vector<Segment>& segments = segments_.emplace_back();
        for (const Tap& i : row.taps) {
          for (const Tap& j : column.taps) {
            append(segments, {((i.shift - rows_.least_shift) * window_columns_ + j.shift -
                               columns_.least_shift) *
                                  in_channels_,
                              (i.index * s.kw + j.index) * in_channels_, in_channels_});
          }
        }
      }
    }
  }

  size_t workspace_bytes() const override {
    return sizeof(float) * (weight_floats() + threads_ * slot_floats());
  }

  void run(ThreadPool& pool, const float* in, const float* weights, float* out,
           const ConvEpilogue& epilogue, std::byte* workspace) const override {
    const ConvLane lane = {in, weights, out, images_};
    run_lanes(pool, {&lane, 1}, epilogue, workspace);
  }

  bool joins() const override { return true; }

  void run_lanes(ThreadPool& pool, std::span<const ConvLane> lanes, const ConvEpilogue& epilogue,
                 std::byte* workspace) const override {
    float* panels = reinterpret_cast<float*>(workspace);
    pack_weights(pool, lanes[0].second, panels);
    const int64_t bands = divide_up(rows_.end - rows_.begin, band_rows_);
    for_each_with_slot(pool, threads_, images_of(lanes) * bands, [&](int64_t slot, int64_t task) {
      const int64_t first = rows_.begin + task % bands * band_rows_;
      float* window = panels + weight_floats() + slot * slot_floats();
      for_each_lane(lanes, 1, task / bands, 1,
                    [&](const ConvLane& lane, int64_t image, int64_t, int64_t) {
                      run_band(lane.first + image * rows_.in * columns_.in * in_channels_, first,
                               std::min(first + band_rows_, rows_.end), panels, epilogue, window,
                               lane.out + image * rows_.out * columns_.out * out_channels_);
                    });
    });
  }

 private:
  int64_t depth() const { return taps_ * in_channels_; }
  int64_t panel_stride() const { return depth() * panel_width(); }
  int64_t weight_floats() const { return panel_floats(depth(), out_channels_); }
  int64_t window_rows(int64_t rows) const {
    return (rows - 1) * rows_.in_step + rows_.most_shift - rows_.least_shift + 1;
  }
  int64_t slot_floats() const {
    return aligned_floats(window_rows(band_rows_) * window_columns_ * in_channels_);
  }

  // Panels of [tap][in channel][out channel]; backward, taps in reverse order and transposed.
  void pack_weights(ThreadPool& pool, const float* weights, float* panels) const {
    const int64_t width = panel_width();
    for_each_with_slot(pool, threads_, panel_count(out_channels_), [&](int64_t, int64_t panel) {
      const int64_t column = panel * width, columns = std::min(width, out_channels_ - column);
      float* out = panels + panel * panel_stride();
      if (!backward_) {
        pack_panels(weights + column, k_, false, depth(), columns, out, 0);
        return;
      }
      for (int64_t tap = 0; tap < taps_; ++tap) {
        pack_panels(weights + ((taps_ - 1 - tap) * c_ + column) * k_, k_, true, k_, columns,
                    out + tap * k_ * width, 0);
      }
    });
  }

  // The rows q in [first, last) of one image, all phases.
  void run_band(const float* in, int64_t first, int64_t last, const float* panels,
                const ConvEpilogue& epilogue, float* window, float* out) const {
    const Window place{first * rows_.in_step + rows_.least_shift, window_rows(last - first),
                       first_column_, window_columns_};
    const bool inside = place.first_row >= 0 && place.first_row + place.rows <= rows_.in &&
                        place.first_column == 0 && place.columns == columns_.in;
    if (inside) {
      window = const_cast<float*>(in) + place.first_row * columns_.in * in_channels_;
    } else {
      copy_window(in, rows_.in, columns_.in, in_channels_, place, window);
    }
    std::vector<const float*> a;
    std::vector<float*> c;
    const std::vector<Segment>* segments = segments_.data();
    for (const Phase& row : rows_.phases) {
      for (const Phase& column : columns_.phases) {
        a.clear();
        c.clear();
        for (int64_t i = first; i < last; ++i) {
          const int64_t y = i * rows_.out_step + row.offset;
          if (y < 0 || y >= rows_.out) continue;
          for (int64_t j = columns_.begin; j < columns_.end; ++j) {
            const int64_t x = j * columns_.out_step + column.offset;
            if (x < 0 || x >= columns_.out) continue;
            a.push_back(window + ((i - first) * rows_.in_step * window_columns_ +
                                  (j - columns_.begin) * columns_.in_step) *
                                     in_channels_);
            c.push_back(out + (y * columns_.out + x) * out_channels_);
          }
        }
        multiply_panels({.a = a,
                         .c = c,
                         .columns = out_channels_,
                         .segments = *segments++,
                         .panels = panels,
                         .panel_stride = panel_stride(),
                         .bias = epilogue.bias,
                         .relu = epilogue.relu});
      }
    }
  }

  int64_t images_;
  int threads_;
  int64_t taps_;
  bool backward_;
  int64_t c_, k_, in_channels_, out_channels_;
  Axis rows_, columns_;
  int64_t first_column_, window_columns_, band_rows_;
  std::vector<std::vector<Segment>> segments_;  // of each pair of phases
};

}  // namespace

std::unique_ptr<ConvKernel> make_patch_image(const ConvShape& shape, bool backward, int threads) {
  return std::make_unique<PatchImage>(shape, backward, threads);
}

}  // namespace artel::kernels
