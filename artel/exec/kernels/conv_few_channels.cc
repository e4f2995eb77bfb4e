#include "artel/exec/kernels/conv_few_channels.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "artel/exec/kernels/conv_window.h"
#include "artel/exec/kernels/gemm_panels.h"
#include "artel/exec/kernels/slots.h"

namespace artel::kernels {
namespace {

constexpr int64_t kBandPixels = 512;
constexpr int64_t kCopyStep = 8;  // floats moved at once by copies, which overrun by less than this

// The patches of a band of output rows as rows of a matrix, and the padded input under them.
struct Patches {
  Patches(const ConvShape& shape) : s(shape) {
    depth = s.kh * s.kw * s.c;
    row_floats = aligned_floats(depth + kCopyStep);
    padded_w = s.w + s.pad_left + s.pad_right;
    run = s.dilation_w == 1 ? s.kw * s.c : s.c;
    band_rows = std::clamp<int64_t>(kBandPixels / std::max<int64_t>(1, s.out_w()), 1,
                                    std::max<int64_t>(1, s.out_h()));
    bands = divide_up(s.out_h(), band_rows);
  }

  int64_t window_rows(int64_t rows) const {
    return (rows - 1) * s.stride_h + (s.kh - 1) * s.dilation_h + 1;
  }
  int64_t window_floats() const {
    return aligned_floats(window_rows(band_rows) * padded_w * s.c + kCopyStep);
  }
  int64_t patch_floats() const { return band_rows * s.out_w() * row_floats; }
  int64_t rows_of(int64_t band) const { return std::min(band_rows, s.out_h() - band * band_rows); }
  Window window_of(int64_t band) const {
    return {band * band_rows * s.stride_h - s.pad_top, window_rows(rows_of(band)), -s.pad_left,
            padded_w};
  }

  // Calls visit(offset in the window, offset in the row) for each contiguous run of a patch.
  template <class Visit>
  void for_each_run(const Visit& visit) const {
    for (int64_t at = 0; at < depth; at += run) {
      const int64_t tap = at / s.c;
      visit((tap / s.kw * s.dilation_h * padded_w + tap % s.kw * s.dilation_w) * s.c, at);
    }
  }

  int64_t pixel_offset(int64_t pixel) const {
    return (pixel / s.out_w() * s.stride_h * padded_w + pixel % s.out_w() * s.stride_w) * s.c;
  }

  // Runs are copied in ascending order, so that each overwrites the overrun of the one before.
  void copy(const float* image, int64_t band, float* window, float* rows) const {
    copy_window(image, s.h, s.w, s.c, window_of(band), window);
    for (int64_t pixel = 0; pixel < rows_of(band) * s.out_w(); ++pixel, rows += row_floats) {
      const float* corner = window + pixel_offset(pixel);
      for_each_run([&](int64_t from, int64_t to) {
        for (int64_t i = 0; i < run; i += kCopyStep) {
          std::memcpy(rows + to + i, corner + from + i, kCopyStep * sizeof(float));
        }
      });
    }
  }

  ConvShape s;
  int64_t depth, row_floats, padded_w, run, band_rows, bands;
};

class FewChannelsForward final : public ConvKernel {
 public:
  FewChannelsForward(const ConvShape& s, int threads) : patches_(s), threads_(threads) {}

  size_t workspace_bytes() const override {
    return sizeof(float) * (weight_floats() + threads_ * slot_floats());
  }

  void run(ThreadPool& pool, const float* x, const float* weights, float* y,
           const ConvEpilogue& epilogue, std::byte* workspace) const override {
    const ConvShape& s = patches_.s;
    float* panels = reinterpret_cast<float*>(workspace);
    pack_panels(weights, s.k, false, patches_.depth, s.k, panels, patches_.depth * panel_width());
    const Segment patch{0, 0, patches_.depth};
    for_each_with_slot(pool, threads_, s.n * patches_.bands, [&](int64_t slot, int64_t task) {
      const int64_t image = task / patches_.bands, band = task % patches_.bands;
      float* window = panels + weight_floats() + slot * slot_floats();
      float* rows = window + patches_.window_floats();
      patches_.copy(x + image * s.h * s.w * s.c, band, window, rows);
      const int64_t pixels = patches_.rows_of(band) * s.out_w();
      const int64_t first = (image * s.out_h() + band * patches_.band_rows) * s.out_w();
      std::vector<const float*> a(pixels);
      std::vector<float*> c(pixels);
      for (int64_t i = 0; i < pixels; ++i) {
        a[i] = rows + i * patches_.row_floats;
        c[i] = y + (first + i) * s.k;
      }
      multiply_panels({.a = a,
                       .c = c,
                       .columns = s.k,
                       .segments = {&patch, 1},
                       .panels = panels,
                       .panel_stride = patches_.depth * panel_width(),
                       .bias = epilogue.bias,
                       .relu = epilogue.relu});
    });
  }

 private:
  int64_t weight_floats() const { return panel_floats(patches_.depth, patches_.s.k); }
  int64_t slot_floats() const { return patches_.window_floats() + patches_.patch_floats(); }

  Patches patches_;
  int threads_;
};

// dy W^T gives the gradients of all patches of an image, which are added up where they overlap.
class FewChannelsData final : public ConvKernel {
 public:
  FewChannelsData(const ConvShape& s, int threads)
      : patches_(s), threads_(threads), padded_h_(s.h + s.pad_top + s.pad_bottom) {}

  size_t workspace_bytes() const override {
    return sizeof(float) * (weight_floats() + threads_ * slot_floats());
  }

  void run(ThreadPool& pool, const float* dy, const float* weights, float* dx, const ConvEpilogue&,
           std::byte* workspace) const override {
    const ConvShape& s = patches_.s;
    float* panels = reinterpret_cast<float*>(workspace);
    pack_panels(weights, s.k, true, s.k, patches_.depth, panels, s.k * panel_width());
    for_each_with_slot(pool, threads_, s.n, [&](int64_t slot, int64_t image) {
      float* sums = panels + weight_floats() + slot * slot_floats();
      std::fill_n(sums, image_floats(), 0.f);
      for (int64_t band = 0; band < patches_.bands; ++band) {
        add_band(dy + image * s.out_h() * s.out_w() * s.k, band, panels, sums + image_floats(),
                 sums);
      }
      // The padding is cut off: a window of the sums that begins inside them.
      copy_window(sums, padded_h_, patches_.padded_w, s.c, {s.pad_top, s.h, s.pad_left, s.w},
                  dx + image * s.h * s.w * s.c);
    });
  }

 private:
  int64_t weight_floats() const { return panel_floats(patches_.s.k, patches_.depth); }
  int64_t image_floats() const {
    return aligned_floats(padded_h_ * patches_.padded_w * patches_.s.c);
  }
  int64_t slot_floats() const { return image_floats() + patches_.patch_floats(); }

  void add_band(const float* dy, int64_t band, const float* panels, float* rows,
                float* sums) const {
    const ConvShape& s = patches_.s;
    const int64_t first = band * patches_.band_rows * s.out_w();
    const int64_t pixels = patches_.rows_of(band) * s.out_w();
    const Segment channels{0, 0, s.k};
    std::vector<const float*> a(pixels);
    std::vector<float*> c(pixels);
    for (int64_t i = 0; i < pixels; ++i) {
      a[i] = dy + (first + i) * s.k;
      c[i] = rows + i * patches_.row_floats;
    }
    multiply_panels({.a = a,
                     .c = c,
                     .columns = patches_.depth,
                     .segments = {&channels, 1},
                     .panels = panels,
                     .panel_stride = s.k * panel_width()});
    for (int64_t i = 0; i < pixels; ++i) {
      float* corner = sums + patches_.pixel_offset(first + i);
      patches_.for_each_run([&](int64_t to, int64_t from) {
        for (int64_t j = 0; j < patches_.run; ++j) corner[to + j] += c[i][from + j];
      });
    }
  }

  Patches patches_;
  int threads_;
  int64_t padded_h_;
};

// Sums over parts of the batch, whose number is fixed by the shape, are added in order at the end.
// With few output channels too the product is taken transposed, to fill the vectors with the patch.
class FewChannelsWeights final : public ConvKernel {
 public:
  FewChannelsWeights(const ConvShape& s, int threads)
      : patches_(s), threads_(threads), transposed_(s.k <= 12), parts_(std::min(s.n, kMostParts)) {}

  size_t workspace_bytes() const override {
    return sizeof(float) * (parts_ * sum_floats() + threads_ * slot_floats());
  }

  void run(ThreadPool& pool, const float* x, const float* dy, float* dw, const ConvEpilogue&,
           std::byte* workspace) const override {
    const ConvShape& s = patches_.s;
    float* sums = reinterpret_cast<float*>(workspace);
    for_each_with_slot(pool, threads_, parts_, [&](int64_t slot, int64_t part) {
      float* scratch = sums + parts_ * sum_floats() + slot * slot_floats();
      const int64_t first = s.n * part / parts_, last = s.n * (part + 1) / parts_;
      for (int64_t task = first * patches_.bands; task < last * patches_.bands; ++task) {
        add_band(x, dy, task / patches_.bands, task % patches_.bands, scratch,
                 task > first * patches_.bands, sums + part * sum_floats());
      }
    });
    for (int64_t i = 0; i < patches_.depth; ++i) {
      for (int64_t k = 0; k < s.k; ++k) {
        float total = 0;
        for (int64_t part = 0; part < parts_; ++part) {
          total += sums[part * sum_floats() + (transposed_ ? k * patches_.depth + i : i * s.k + k)];
        }
        dw[i * s.k + k] = total;
      }
    }
  }

 private:
  static constexpr int64_t kMostParts = 16;

  int64_t sum_floats() const { return aligned_floats(patches_.depth * patches_.s.k); }
  int64_t slot_floats() const {
    return patches_.window_floats() + patches_.patch_floats() +
           panel_floats(patches_.band_rows * patches_.s.out_w(), patches_.s.k);
  }

  void add_band(const float* x, const float* dy, int64_t image, int64_t band, float* scratch,
                bool add, float* sum) const {
    const ConvShape& s = patches_.s;
    float* rows = scratch + patches_.window_floats();
    patches_.copy(x + image * s.h * s.w * s.c, band, scratch, rows);
    const int64_t pixels = patches_.rows_of(band) * s.out_w();
    const float* gradient = dy + (image * s.out_h() + band * patches_.band_rows) * s.out_w() * s.k;
    const Segment all{0, 0, pixels};
    const int64_t outputs = transposed_ ? s.k : patches_.depth;
    std::vector<const float*> a(outputs);
    std::vector<float*> c(outputs);
    for (int64_t i = 0; i < outputs; ++i) {
      a[i] = (transposed_ ? gradient : rows) + i;
      c[i] = sum + i * (transposed_ ? patches_.depth : s.k);
    }
    PanelProduct product{.a = a, .c = c, .segments = {&all, 1}, .accumulate = add};
    if (transposed_) {
      product.a_step = s.k;
      product.columns = patches_.depth;
      product.panels = rows;
      product.panel_step = patches_.row_floats;
      product.panel_stride = panel_width();
    } else {
      float* panels = rows + patches_.patch_floats();
      pack_panels(gradient, s.k, false, pixels, s.k, panels, pixels * panel_width());
      product.a_step = patches_.row_floats;
      product.columns = s.k;
      product.panels = panels;
      product.panel_stride = pixels * panel_width();
    }
    multiply_panels(product);
  }

  Patches patches_;
  int threads_;
  bool transposed_;
  int64_t parts_;
};

}  // namespace

std::unique_ptr<ConvKernel> make_few_channels(const ConvShape& shape, ConvPass pass, int threads) {
  switch (pass) {
    case ConvPass::forward:
      return std::make_unique<FewChannelsForward>(shape, threads);
    case ConvPass::backward_data:
      return std::make_unique<FewChannelsData>(shape, threads);
    case ConvPass::backward_weights:
      break;
  }
  return std::make_unique<FewChannelsWeights>(shape, threads);
}

}  // namespace artel::kernels
