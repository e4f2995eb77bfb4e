#include "artel/exec/cpu/sequence/rotary.h"

#include "artel/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/sequence/rotary.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// The heads of one position. `cosine` and `sine` have `half` elements each.
void rotate_row(const float* x, int64_t heads, int64_t half, const float* cosine, const float* sine,
                bool inverse, float* y) {
  for (int64_t head = 0; head < heads; ++head, x += 2 * half, y += 2 * half)
    for_each_vector(half, [&](auto d, int64_t i) HWY_ATTR {
      const auto a = hn::LoadU(d, x + i), b = hn::LoadU(d, x + half + i);
      const auto c = hn::LoadU(d, cosine + i);
      auto s = hn::LoadU(d, sine + i);
      if (inverse) s = hn::Neg(s);
      hn::StoreU(hn::NegMulAdd(b, s, hn::Mul(a, c)), d, y + i);
      hn::StoreU(hn::MulAdd(a, s, hn::Mul(b, c)), d, y + half + i);
    });
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(rotate_row);

void rotary(ThreadPool& pool, const RotaryShape& shape, const float* x, const float* table,
            const int32_t* places, float* y) {
  const auto rotate = HWY_DYNAMIC_DISPATCH(rotate_row);
  const int64_t half = shape.width / 2, row = shape.heads * shape.width;
  constexpr int64_t kElements = 16384;  // fewer are not worth another thread
  parallel_for(
      pool, shape.batch * shape.positions, 1 + kElements / row, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
          const int64_t position = i % shape.positions;
          const int64_t place = places ? places[position] : position;
          require(place >= 0 && place < shape.table_rows, ErrorKind::invalid_argument,
                  "[rotary] place: got {}, expected 0 to {}", place, shape.table_rows - 1);
          const float* angles = table + place * shape.width;
          rotate(x + i * row, shape.heads, half, angles, angles + half, shape.inverse, y + i * row);
        }
      });
}

}  // namespace artel::kernels
#endif
