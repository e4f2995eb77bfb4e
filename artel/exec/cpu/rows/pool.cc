#include "artel/exec/cpu/rows/pool.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/exec/cpu/rows/pool_window.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/rows/pool.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// Calls body(d, count, channel) for groups of `count` (4 or 1, a constant) vectors: two cache lines
// of each pixel are used before the next pixel evicts them.
template <class Body>
HWY_INLINE void for_each_group(int64_t begin, int64_t end, const Body& body) {
  const FullTag d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  int64_t c = begin;
  for (; c + 4 * width <= end; c += 4 * width) body(d, std::integral_constant<int, 4>(), c);
  for (; c + width <= end; c += width) body(d, std::integral_constant<int, 1>(), c);
  if (hn::Lanes(FourTag()) == 4 && c + 4 <= end) {
    body(FourTag(), std::integral_constant<int, 1>(), c);
    c += 4;
  }
  for (; c < end; ++c) body(OneTag(), std::integral_constant<int, 1>(), c);
}

template <class D>
using IndexTag = hn::Rebind<int32_t, D>;

template <class D>
HWY_INLINE void store_index(D, hn::Vec<IndexTag<D>> index, int32_t* to) {
  hn::StoreU(index, IndexTag<D>(), to);
}
template <class D>
HWY_INLINE void store_index(D, hn::Vec<IndexTag<D>> index, uint8_t* to) {
  const hn::Rebind<uint8_t, D> d8;
  hn::StoreU(hn::DemoteTo(d8, index), d8, to);
}
template <class D>
HWY_INLINE hn::Vec<IndexTag<D>> load_index(D, const int32_t* from) {
  return hn::LoadU(IndexTag<D>(), from);
}
template <class D>
HWY_INLINE hn::Vec<IndexTag<D>> load_index(D, const uint8_t* from) {
  return hn::PromoteTo(IndexTag<D>(), hn::LoadU(hn::Rebind<uint8_t, D>(), from));
}

// Calls body(first pixel of the input, of the output, rows, columns, average scale) for the windows
// of one row of outputs.
template <class Body>
HWY_INLINE void for_each_window(const PoolShape& shape, bool count_include_pad, int64_t image,
                                int64_t output_row, const Body& body) {
  const PoolSpan vertical = pool_span(shape.height, output_row);
  const int64_t rows = vertical.end - vertical.begin;
  for (int64_t j = 0; j < shape.width.output; ++j) {
    const PoolSpan across = pool_span(shape.width, j);
    const int64_t columns = across.end - across.begin;
    const int64_t size =
        count_include_pad ? vertical.padded_size * across.padded_size : rows * columns;
    body((image * shape.height.input + vertical.begin) * shape.width.input + across.begin,
         (image * shape.height.output + output_row) * shape.width.output + j, rows, columns,
         1.0f / static_cast<float>(size));
  }
}

template <typename Index>
HWY_INLINE void max_row(const PoolShape& shape, int64_t image, int64_t output_row, const float* x,
                        float* y, Index* argmax) {
  const int64_t channels = shape.channels, pitch = shape.width.input * channels;
  for_each_window(
      shape, false, image, output_row,
      [&](int64_t from, int64_t to, int64_t rows, int64_t columns, float) HWY_ATTR {
        for_each_group(0, channels, [&](auto d, auto count, int64_t c) HWY_ATTR {
          const IndexTag<decltype(d)> di;
          const auto width = static_cast<int64_t>(hn::Lanes(d));
          hn::Vec<decltype(d)> best[count()];
          hn::Vec<decltype(di)> winner[count()];
          const float* first = x + from * channels + c;
          for (int k = 0; k < count(); ++k) {
            best[k] = hn::LoadU(d, first + k * width);
            winner[k] = hn::Zero(di);
          }
          for (int64_t h = 0; h < rows; ++h) {
            for (int64_t w = 0; w < columns; ++w) {
              const auto position = hn::Set(di, static_cast<int32_t>(h * columns + w));
              for (int k = 0; k < count(); ++k) {
                const auto value = hn::LoadU(d, first + h * pitch + w * channels + k * width);
                const auto wins = hn::Or(hn::Gt(value, best[k]), hn::IsNaN(value));
                best[k] = hn::IfThenElse(wins, value, best[k]);
                winner[k] = hn::IfThenElse(hn::RebindMask(di, wins), position, winner[k]);
              }
            }
          }
          for (int k = 0; k < count(); ++k) {
            const int64_t i = to * channels + c + k * width;
            hn::StoreU(best[k], d, y + i);
            if (argmax) store_index(d, winner[k], argmax + i);
          }
        });
      });
}

// Adds to dx (or, where windows tile the input, assigns) one row of windows, some channels of it.
template <bool kAssign, typename Index>
HWY_INLINE void max_backward_row(const PoolShape& shape, int64_t image, int64_t output_row,
                                 int64_t begin, int64_t end, const float* dy, const Index* argmax,
                                 float* dx) {
  const int64_t channels = shape.channels, pitch = shape.width.input * channels;
  for_each_window(shape, false, image, output_row,
                  [&](int64_t from, int64_t to, int64_t rows, int64_t columns, float) HWY_ATTR {
                    for_each_group(begin, end, [&](auto d, auto count, int64_t c) HWY_ATTR {
                      const IndexTag<decltype(d)> di;
                      const auto width = static_cast<int64_t>(hn::Lanes(d));
                      hn::Vec<decltype(d)> gradient[count()];
                      hn::Vec<decltype(di)> winner[count()];
                      for (int k = 0; k < count(); ++k) {
                        const int64_t i = to * channels + c + k * width;
                        gradient[k] = hn::LoadU(d, dy + i);
                        winner[k] = load_index(d, argmax + i);
                      }
                      float* first = dx + from * channels + c;
                      for (int64_t h = 0; h < rows; ++h) {
                        for (int64_t w = 0; w < columns; ++w) {
                          const auto position = hn::Set(di, static_cast<int32_t>(h * columns + w));
                          for (int k = 0; k < count(); ++k) {
                            float* at = first + h * pitch + w * channels + k * width;
                            const auto won = hn::RebindMask(d, hn::Eq(winner[k], position));
                            const auto part = hn::IfThenElseZero(won, gradient[k]);
                            hn::StoreU(kAssign ? part : hn::Add(hn::LoadU(d, at), part), d, at);
                          }
                        }
                      }
                    });
                  });
}

void average_row(const PoolShape& shape, bool count_include_pad, int64_t image, int64_t output_row,
                 const float* x, float* y) {
  const int64_t channels = shape.channels, pitch = shape.width.input * channels;
  for_each_window(shape, count_include_pad, image, output_row,
                  [&](int64_t from, int64_t to, int64_t rows, int64_t columns, float scale)
                      HWY_ATTR {
                        for_each_group(0, channels, [&](auto d, auto count, int64_t c) HWY_ATTR {
                          const auto width = static_cast<int64_t>(hn::Lanes(d));
                          hn::Vec<decltype(d)> sum[count()];
                          for (int k = 0; k < count(); ++k) sum[k] = hn::Zero(d);
                          const float* first = x + from * channels + c;
                          for (int64_t h = 0; h < rows; ++h) {
                            for (int64_t w = 0; w < columns; ++w) {
                              const float* at = first + h * pitch + w * channels;
                              for (int k = 0; k < count(); ++k)
                                sum[k] = hn::Add(sum[k], hn::LoadU(d, at + k * width));
                            }
                          }
                          float* out = y + to * channels + c;
                          for (int k = 0; k < count(); ++k)
                            hn::StoreU(hn::Mul(sum[k], hn::Set(d, scale)), d, out + k * width);
                        });
                      });
}

template <bool kAssign>
HWY_INLINE void average_backward_row(const PoolShape& shape, bool count_include_pad, int64_t image,
                                     int64_t output_row, int64_t begin, int64_t end,
                                     const float* dy, float* dx) {
  const int64_t channels = shape.channels, pitch = shape.width.input * channels;
  for_each_window(
      shape, count_include_pad, image, output_row,
      [&](int64_t from, int64_t to, int64_t rows, int64_t columns, float scale) HWY_ATTR {
        for_each_group(begin, end, [&](auto d, auto count, int64_t c) HWY_ATTR {
          const auto width = static_cast<int64_t>(hn::Lanes(d));
          hn::Vec<decltype(d)> part[count()];
          for (int k = 0; k < count(); ++k) {
            const auto gradient = hn::LoadU(d, dy + to * channels + c + k * width);
            part[k] = hn::Mul(gradient, hn::Set(d, scale));
          }
          float* first = dx + from * channels + c;
          for (int64_t h = 0; h < rows; ++h) {
            for (int64_t w = 0; w < columns; ++w) {
              float* at = first + h * pitch + w * channels;
              for (int k = 0; k < count(); ++k) {
                float* one = at + k * width;
                hn::StoreU(kAssign ? part[k] : hn::Add(hn::LoadU(d, one), part[k]), d, one);
              }
            }
          }
        });
      });
}

void max_row_small(const PoolShape& shape, int64_t image, int64_t output_row, const float* x,
                   float* y, uint8_t* argmax) {
  max_row(shape, image, output_row, x, y, argmax);
}

void max_row_large(const PoolShape& shape, int64_t image, int64_t output_row, const float* x,
                   float* y, int32_t* argmax) {
  max_row(shape, image, output_row, x, y, argmax);
}

void max_backward_small(const PoolShape& shape, bool assign, int64_t image, int64_t output_row,
                        int64_t begin, int64_t end, const float* dy, const uint8_t* argmax,
                        float* dx) {
  assign ? max_backward_row<true>(shape, image, output_row, begin, end, dy, argmax, dx)
         : max_backward_row<false>(shape, image, output_row, begin, end, dy, argmax, dx);
}

void max_backward_large(const PoolShape& shape, bool assign, int64_t image, int64_t output_row,
                        int64_t begin, int64_t end, const float* dy, const int32_t* argmax,
                        float* dx) {
  assign ? max_backward_row<true>(shape, image, output_row, begin, end, dy, argmax, dx)
         : max_backward_row<false>(shape, image, output_row, begin, end, dy, argmax, dx);
}

void average_backward(const PoolShape& shape, bool count_include_pad, bool assign, int64_t image,
                      int64_t output_row, int64_t begin, int64_t end, const float* dy, float* dx) {
  assign
      ? average_backward_row<true>(shape, count_include_pad, image, output_row, begin, end, dy, dx)
      : average_backward_row<false>(shape, count_include_pad, image, output_row, begin, end, dy,
                                    dx);
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(max_row_small);
HWY_EXPORT(max_row_large);
HWY_EXPORT(average_row);
HWY_EXPORT(max_backward_small);
HWY_EXPORT(max_backward_large);
HWY_EXPORT(average_backward);

namespace {

// row(image, output row) for all, spread over the pool.
template <typename Row>
void for_each_output_row(ThreadPool& pool, const PoolShape& shape, const Row& row) {
  const int64_t work = shape.height.input * shape.width.input * shape.channels;
  const int64_t grain = std::max<int64_t>(1, 16384 * shape.height.output / (work + 1));
  parallel_for(pool, shape.images * shape.height.output, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) row(i / shape.height.output, i % shape.height.output);
  });
}

// Windows may overlap, so a thread owns whole images, or some channels of them where there are
// few. row(assign, image, output row, first channel, last) adds one row of windows to dx.
template <typename Row>
void for_each_gradient_row(ThreadPool& pool, const PoolShape& shape, float* dx, const Row& row) {
  constexpr int64_t kPart = 64;
  const bool assign = tiles_exactly(shape.height) && tiles_exactly(shape.width);
  const int64_t channels = shape.channels, pixels = shape.height.input * shape.width.input;
  const int64_t size = shape.images >= pool.threads() ? std::max<int64_t>(1, channels) : kPart;
  const int64_t parts = (channels + size - 1) / size;
  pool.run(shape.images * parts, [&](int64_t task) {
    const int64_t image = task / parts, begin = task % parts * size;
    const int64_t end = std::min(channels, begin + size);
    float* own = dx + image * pixels * channels;
    for (int64_t pixel = 0; pixel < pixels && !assign; ++pixel)
      std::fill(own + pixel * channels + begin, own + pixel * channels + end, 0.0f);
    for (int64_t i = 0; i < shape.height.output; ++i) row(assign, image, i, begin, end);
  });
}

void require_small_windows(const PoolAxis& height, const PoolAxis& width) {
  const auto longest = [](const PoolAxis& axis) {
    return axis.kernel ? axis.kernel : axis.input / axis.output + 2;
  };
  require(std::min(longest(height), height.input) * std::min(longest(width), width.input) <= 256,
          ErrorKind::internal, "[max_pool] window: got {} x {}, expected at most 256 elements",
          longest(height), longest(width));
}

}  // namespace

PoolAxis PoolAxis::windows(int64_t input, int64_t kernel, int64_t stride, int64_t padding) {
  require(kernel > 0 && stride > 0 && padding >= 0 && 2 * padding <= kernel,
          ErrorKind::invalid_argument,
          "[pool] window: got kernel {}, stride {}, padding {}, expected padding of at most half "
          "the kernel",
          kernel, stride, padding);
  require(input + 2 * padding >= kernel, ErrorKind::shape,
          "[pool] input: got {} with padding {}, expected at least the kernel {}", input, padding,
          kernel);
  return {input, (input + 2 * padding - kernel) / stride + 1, kernel, stride, padding};
}

PoolAxis PoolAxis::adaptive(int64_t input, int64_t output) { return {input, output, 0, 1, 0}; }

template <>
void max_pool(ThreadPool& pool, const PoolShape& shape, const float* x, float* y, uint8_t* argmax) {
  if (argmax) require_small_windows(shape.height, shape.width);
  const auto row = HWY_DYNAMIC_DISPATCH(max_row_small);
  for_each_output_row(pool, shape, [&](int64_t image, int64_t output_row) {
    row(shape, image, output_row, x, y, argmax);
  });
}

template <>
void max_pool(ThreadPool& pool, const PoolShape& shape, const float* x, float* y, int32_t* argmax) {
  const auto row = HWY_DYNAMIC_DISPATCH(max_row_large);
  for_each_output_row(pool, shape, [&](int64_t image, int64_t output_row) {
    row(shape, image, output_row, x, y, argmax);
  });
}

template <>
void max_pool_backward(ThreadPool& pool, const PoolShape& shape, const float* dy,
                       const uint8_t* argmax, float* dx) {
  const auto row = HWY_DYNAMIC_DISPATCH(max_backward_small);
  for_each_gradient_row(
      pool, shape, dx,
      [&](bool assign, int64_t image, int64_t output_row, int64_t begin, int64_t end) {
        row(shape, assign, image, output_row, begin, end, dy, argmax, dx);
      });
}

template <>
void max_pool_backward(ThreadPool& pool, const PoolShape& shape, const float* dy,
                       const int32_t* argmax, float* dx) {
  const auto row = HWY_DYNAMIC_DISPATCH(max_backward_large);
  for_each_gradient_row(
      pool, shape, dx,
      [&](bool assign, int64_t image, int64_t output_row, int64_t begin, int64_t end) {
        row(shape, assign, image, output_row, begin, end, dy, argmax, dx);
      });
}

void average_pool(ThreadPool& pool, const PoolShape& shape, bool count_include_pad, const float* x,
                  float* y) {
  const auto row = HWY_DYNAMIC_DISPATCH(average_row);
  for_each_output_row(pool, shape, [&](int64_t image, int64_t output_row) {
    row(shape, count_include_pad, image, output_row, x, y);
  });
}

void average_pool_backward(ThreadPool& pool, const PoolShape& shape, bool count_include_pad,
                           const float* dy, float* dx) {
  const auto row = HWY_DYNAMIC_DISPATCH(average_backward);
  for_each_gradient_row(
      pool, shape, dx,
      [&](bool assign, int64_t image, int64_t output_row, int64_t begin, int64_t end) {
        row(shape, count_include_pad, assign, image, output_row, begin, end, dy, dx);
      });
}

}  // namespace artel::kernels
#endif
