#include "artel/exec/cpu/convolution/winograd_transform.h"

#include <algorithm>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/convolution/winograd_transform.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int64_t kLanes = HWY_LANES(float);
constexpr int64_t kPanel = 2 * kLanes;

HWY_INLINE V scale(float factor, V value) { return hn::Mul(hn::Set(D(), factor), value); }
HWY_INLINE V scale_add(float factor, V value, V sum) {
  return hn::MulAdd(hn::Set(D(), factor), value, sum);
}

// Stores the first `count` values. Masked stores are slow microcode on some processors.
HWY_INLINE void store_first(V value, int64_t count, float* out) {
  if (count >= kLanes) return hn::StoreU(value, D(), out);
  HWY_ALIGN float values[kLanes];
  hn::Store(value, D(), values);
  for (int64_t i = 0; i < count; ++i) out[i] = values[i];
}

// The products of the matrices of F(2, 3) with a column.
struct F2 {
  static constexpr int kOutput = 2, kTile = 4;
  struct Input {  // B^T x
    static constexpr int kIn = 4, kOut = 4;
    static HWY_INLINE void apply(const V (&x)[4], V (&t)[4]) {
      t[0] = hn::Sub(x[0], x[2]);
      t[1] = hn::Add(x[1], x[2]);
      t[2] = hn::Sub(x[2], x[1]);
      t[3] = hn::Sub(x[1], x[3]);
    }
  };
  struct Output {  // A^T m
    static constexpr int kIn = 4, kOut = 2;
    static HWY_INLINE void apply(const V (&m)[4], V (&y)[2]) {
      y[0] = hn::Add(hn::Add(m[0], m[1]), m[2]);
      y[1] = hn::Sub(hn::Sub(m[1], m[2]), m[3]);
    }
  };
  struct OutputGradient {  // A y
    static constexpr int kIn = 2, kOut = 4;
    static HWY_INLINE void apply(const V (&y)[2], V (&m)[4]) {
      m[0] = y[0];
      m[1] = hn::Add(y[0], y[1]);
      m[2] = hn::Sub(y[0], y[1]);
      m[3] = hn::Neg(y[1]);
    }
  };
  struct Weights {  // G w
    static constexpr int kIn = 3, kOut = 4;
    static HWY_INLINE void apply(const V (&w)[3], V (&u)[4]) {
      const V even = scale(0.5f, hn::Add(w[0], w[2])), odd = scale(0.5f, w[1]);
      u[0] = w[0];
      u[1] = hn::Add(even, odd);
      u[2] = hn::Sub(even, odd);
      u[3] = w[2];
    }
  };
  struct WeightsGradient {  // G^T u
    static constexpr int kIn = 4, kOut = 3;
    static HWY_INLINE void apply(const V (&u)[4], V (&w)[3]) {
      const V half = scale(0.5f, hn::Add(u[1], u[2]));
      w[0] = hn::Add(u[0], half);
      w[1] = scale(0.5f, hn::Sub(u[1], u[2]));
      w[2] = hn::Add(half, u[3]);
    }
  };
};

// The same for F(4, 3).
struct F4 {
  static constexpr int kOutput = 4, kTile = 6;
  struct Input {
    static constexpr int kIn = 6, kOut = 6;
    static HWY_INLINE void apply(const V (&x)[6], V (&t)[6]) {
      const V even1 = scale_add(-4, x[2], x[4]), odd1 = scale_add(-4, x[1], x[3]);
      const V even2 = hn::Sub(x[4], x[2]), odd2 = hn::Sub(x[3], x[1]);
      t[0] = scale_add(4, x[0], scale_add(-5, x[2], x[4]));
      t[1] = hn::Add(even1, odd1);
      t[2] = hn::Sub(even1, odd1);
      t[3] = scale_add(2, odd2, even2);
      t[4] = scale_add(-2, odd2, even2);
      t[5] = scale_add(4, x[1], scale_add(-5, x[3], x[5]));
    }
  };
  struct Output {
    static constexpr int kIn = 6, kOut = 4;
    static HWY_INLINE void apply(const V (&m)[6], V (&y)[4]) {
      const V sum1 = hn::Add(m[1], m[2]), difference1 = hn::Sub(m[1], m[2]);
      const V sum2 = hn::Add(m[3], m[4]), difference2 = hn::Sub(m[3], m[4]);
      y[0] = hn::Add(hn::Add(m[0], sum1), sum2);
      y[1] = scale_add(2, difference2, difference1);
      y[2] = scale_add(4, sum2, sum1);
      y[3] = hn::Add(scale_add(8, difference2, difference1), m[5]);
    }
  };
  struct OutputGradient {
    static constexpr int kIn = 4, kOut = 6;
    static HWY_INLINE void apply(const V (&y)[4], V (&m)[6]) {
      const V even1 = hn::Add(y[0], y[2]), odd1 = hn::Add(y[1], y[3]);
      const V even2 = scale_add(4, y[2], y[0]), odd2 = scale_add(4, y[3], y[1]);
      m[0] = y[0];
      m[1] = hn::Add(even1, odd1);
      m[2] = hn::Sub(even1, odd1);
      m[3] = scale_add(2, odd2, even2);
      m[4] = scale_add(-2, odd2, even2);
      m[5] = y[3];
    }
  };
  struct Weights {
    static constexpr int kIn = 3, kOut = 6;
    static HWY_INLINE void apply(const V (&w)[3], V (&u)[6]) {
      const V even1 = scale(-1 / 6.f, hn::Add(w[0], w[2]));
      const V even2 = scale_add(1 / 24.f, w[0], scale(1 / 6.f, w[2]));
      u[0] = scale(0.25f, w[0]);
      u[1] = scale_add(-1 / 6.f, w[1], even1);
      u[2] = scale_add(1 / 6.f, w[1], even1);
      u[3] = scale_add(1 / 12.f, w[1], even2);
      u[4] = scale_add(-1 / 12.f, w[1], even2);
      u[5] = w[2];
    }
  };
  struct WeightsGradient {
    static constexpr int kIn = 6, kOut = 3;
    static HWY_INLINE void apply(const V (&u)[6], V (&w)[3]) {
      const V sum1 = scale(-1 / 6.f, hn::Add(u[1], u[2])), sum2 = hn::Add(u[3], u[4]);
      w[0] = scale_add(0.25f, u[0], scale_add(1 / 24.f, sum2, sum1));
      w[1] = scale_add(1 / 6.f, hn::Sub(u[2], u[1]), scale(1 / 12.f, hn::Sub(u[3], u[4])));
      w[2] = hn::Add(scale_add(1 / 6.f, sum2, sum1), u[5]);
    }
  };
};

// A square of vectors in memory.
template <class T>
struct Square {
  T* origin;
  int64_t row, column;  // strides

  T* at(int64_t i, int64_t j) const { return origin + i * row + j * column; }
};

// Sanitizers need minutes to compile unrolled loops.
constexpr int kUnroll = HWY_IS_ASAN || HWY_IS_TSAN ? 1 : 6;

// Applies a formula on both sides: out = T in T^T.
template <class Formula>
HWY_INLINE void transform(const Square<const float>& in, const Square<float>& out) {
  const D d;
  V half[Formula::kOut][Formula::kIn];
  HWY_UNROLL(kUnroll)
  for (int j = 0; j < Formula::kIn; ++j) {
    V column[Formula::kIn], result[Formula::kOut];
    HWY_UNROLL(kUnroll)
    for (int i = 0; i < Formula::kIn; ++i) column[i] = hn::LoadU(d, in.at(i, j));
    Formula::apply(column, result);
    HWY_UNROLL(kUnroll)
    for (int i = 0; i < Formula::kOut; ++i) half[i][j] = result[i];
  }
  HWY_UNROLL(kUnroll)
  for (int i = 0; i < Formula::kOut; ++i) {
    V result[Formula::kOut];
    Formula::apply(half[i], result);
    HWY_UNROLL(kUnroll)
    for (int j = 0; j < Formula::kOut; ++j) hn::StoreU(result[j], d, out.at(i, j));
  }
}

// The place of a tile's first value, and how much of its patch lies inside the image.
struct Patch {
  Patch(const TileGrid& grid, int output, int64_t size, int64_t tile) {
    const int64_t column = tile % grid.tiles_w * output - grid.left;
    const int64_t row = tile / grid.tiles_w % grid.tiles_h * output - grid.top;
    const int64_t image = tile / grid.tiles_w / grid.tiles_h;
    offset = ((image * grid.height + row) * grid.width + column) * grid.channels;
    row_begin = std::max<int64_t>(0, -row);
    row_end = std::min(size, grid.height - row);
    column_begin = std::max<int64_t>(0, -column);
    column_end = std::min(size, grid.width - column);
    whole = row_begin == 0 && column_begin == 0 && row_end == size && column_end == size;
  }

  int64_t offset, row_begin, row_end, column_begin, column_end;
  bool whole;
};

// Reads patches of the image, transforms them and writes kTile x kTile elements.
template <class F, class Formula>
void transform_patches(const TileGrid& grid, const float* image, int64_t first, int64_t tiles,
                       ChannelRange channels, const TransformedLayout& layout, float* transformed) {
  constexpr int kSize = Formula::kIn;
  const D d;
  HWY_ALIGN float border[kSize * kSize * kLanes];
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const Patch patch(grid, F::kOutput, kSize, first + tile);
    for (int64_t c = 0; c < channels.count; c += kLanes) {
      Square<const float> in{image + patch.offset + channels.begin + c, grid.width * grid.channels,
                             grid.channels};
      if (!patch.whole || c + kLanes > channels.count) {
        const int64_t count = std::min(kLanes, channels.count - c);
        const auto valid = hn::FirstN(d, count);
        std::fill_n(border, kSize * kSize * kLanes, 0.f);
        for (int64_t i = patch.row_begin; i < patch.row_end; ++i) {
          for (int64_t j = patch.column_begin; j < patch.column_end; ++j) {
            hn::Store(load_first(valid, in.at(i, j), count), d, border + (i * kSize + j) * kLanes);
          }
        }
        in = {border, kSize * kLanes, kLanes};
      }
      float* out = transformed + tile * layout.tile + c / kPanel * layout.group + c % kPanel;
      transform<Formula>(in, {out, F::kTile * layout.element, layout.element});
    }
  }
}

template <class F>
void output_tiles(const TileGrid& grid, const float* transformed, int64_t element_stride,
                  int64_t row_stride, int64_t first, int64_t tiles, ChannelRange channels,
                  const float* bias, bool relu, float* image) {
  const D d;
  const V least = hn::Set(d, relu ? 0.f : -std::numeric_limits<float>::infinity());
  HWY_ALIGN float values[F::kOutput * F::kOutput * kLanes];
  const Square<float> result{values, F::kOutput * kLanes, kLanes};
  for (int64_t tile = 0; tile < tiles; ++tile) {
    const Patch patch(grid, F::kOutput, F::kOutput, first + tile);
    for (int64_t c = 0; c < channels.count; c += kLanes) {
      const int64_t count = std::min(kLanes, channels.count - c);
      const Square<float> out{image + patch.offset + channels.begin + c, grid.width * grid.channels,
                              grid.channels};
      const V shift =
          bias ? load_first(hn::FirstN(d, count), bias + channels.begin + c, count) : hn::Zero(d);
      transform<typename F::Output>(
          {transformed + tile * row_stride + c, F::kTile * element_stride, element_stride}, result);
      for (int64_t i = patch.row_begin; i < patch.row_end; ++i) {
        for (int64_t j = patch.column_begin; j < patch.column_end; ++j) {
          const V value = hn::Add(hn::Load(d, result.at(i, j)), shift);
          store_first(hn::Max(least, value), count, out.at(i, j));  // in this order a NaN stays
        }
      }
    }
  }
}

template <class F>
void weights(const float* taps, int64_t tap_stride, int64_t rows, float* transformed,
             int64_t element_stride) {
  for (int64_t at = 0; at < rows * kPanel; at += kLanes) {
    transform<typename F::Weights>({taps + at, 3 * tap_stride, tap_stride},
                                   {transformed + at, F::kTile * element_stride, element_stride});
  }
}

template <class F>
void weights_gradient(const float* transformed, int64_t element_stride, int64_t row_stride,
                      int64_t rows, int64_t columns, const PartsBelow& below, float* dw,
                      int64_t tap_stride, int64_t dw_row_stride) {
  const D d;
  HWY_ALIGN float values[kWinogradTaps * kLanes];
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t c = 0; c < columns; c += kLanes) {
      transform<typename F::WeightsGradient>(
          {transformed + row * row_stride + c, F::kTile * element_stride, element_stride},
          {values, 3 * kLanes, kLanes});
      const int64_t count = std::min(kLanes, columns - c);
      for (int64_t tap = 0; tap < kWinogradTaps; ++tap) {
        float* out = dw + tap * tap_stride + row * dw_row_stride + c;
        V value = hn::Load(d, values + tap * kLanes);
        for (int part = 0; part < below.count; ++part) {
          out -= below.distance;
          value = hn::Add(load_first(hn::FirstN(d, count), out, count), value);
        }
        store_first(value, count, out);
      }
    }
  }
}

void Input(int output, const TileGrid& grid, const float* image, int64_t first, int64_t tiles,
           const TransformedLayout& layout, float* transformed) {
  const auto run =
      output == 2 ? &transform_patches<F2, F2::Input> : &transform_patches<F4, F4::Input>;
  run(grid, image, first, tiles, {0, grid.channels}, layout, transformed);
}

void OutputGradient(int output, const TileGrid& grid, const float* image, int64_t first,
                    int64_t tiles, ChannelRange channels, const TransformedLayout& layout,
                    float* transformed) {
  const auto run = output == 2 ? &transform_patches<F2, F2::OutputGradient>
                               : &transform_patches<F4, F4::OutputGradient>;
  run(grid, image, first, tiles, channels, layout, transformed);
}

void Output(int output, const TileGrid& grid, const float* transformed, int64_t element_stride,
            int64_t row_stride, int64_t first, int64_t tiles, ChannelRange channels,
            const float* bias, bool relu, float* image) {
  const auto run = output == 2 ? &output_tiles<F2> : &output_tiles<F4>;
  run(grid, transformed, element_stride, row_stride, first, tiles, channels, bias, relu, image);
}

void Weights(int output, const float* taps, int64_t tap_stride, int64_t rows, float* transformed,
             int64_t element_stride) {
  const auto run = output == 2 ? &weights<F2> : &weights<F4>;
  run(taps, tap_stride, rows, transformed, element_stride);
}

void WeightsGradient(int output, const float* transformed, int64_t element_stride,
                     int64_t row_stride, int64_t rows, int64_t columns, const PartsBelow& below,
                     float* dw, int64_t tap_stride, int64_t dw_row_stride) {
  const auto run = output == 2 ? &weights_gradient<F2> : &weights_gradient<F4>;
  run(transformed, element_stride, row_stride, rows, columns, below, dw, tap_stride, dw_row_stride);
}

}  // namespace
}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(Input);
HWY_EXPORT(OutputGradient);
HWY_EXPORT(Output);
HWY_EXPORT(Weights);
HWY_EXPORT(WeightsGradient);

void winograd_input(int output, const TileGrid& grid, const float* image, int64_t first,
                    int64_t tiles, const TransformedLayout& layout, float* transformed) {
  HWY_DYNAMIC_DISPATCH(Input)(output, grid, image, first, tiles, layout, transformed);
}

void winograd_output_gradient(int output, const TileGrid& grid, const float* image, int64_t first,
                              int64_t tiles, ChannelRange channels, const TransformedLayout& layout,
                              float* transformed) {
  HWY_DYNAMIC_DISPATCH(OutputGradient)
  (output, grid, image, first, tiles, channels, layout, transformed);
}

void winograd_output(int output, const TileGrid& grid, const float* transformed,
                     int64_t element_stride, int64_t row_stride, int64_t first, int64_t tiles,
                     ChannelRange channels, const float* bias, bool relu, float* image) {
  HWY_DYNAMIC_DISPATCH(Output)
  (output, grid, transformed, element_stride, row_stride, first, tiles, channels, bias, relu,
   image);
}

void winograd_weights(int output, const float* taps, int64_t tap_stride, int64_t rows,
                      float* transformed, int64_t element_stride) {
  HWY_DYNAMIC_DISPATCH(Weights)(output, taps, tap_stride, rows, transformed, element_stride);
}

void winograd_weights_gradient(int output, const float* transformed, int64_t element_stride,
                               int64_t row_stride, int64_t rows, int64_t columns,
                               const PartsBelow& below, float* dw, int64_t tap_stride,
                               int64_t dw_row_stride) {
  HWY_DYNAMIC_DISPATCH(WeightsGradient)
  (output, transformed, element_stride, row_stride, rows, columns, below, dw, tap_stride,
   dw_row_stride);
}

}  // namespace artel::kernels
#endif
