#include "artel/exec/cpu/matmul/int8_product.h"

#include <cmath>
#include <limits>

#include "artel/exec/cpu/matmul/int8_tiles.h"
#include "artel/exec/instructions.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/matmul/int8_product.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// Rows are multiples of 32 elements, so vectors of at most 32 need no tail.
using Int8FloatTag = hn::CappedTag<float, 16>;
using Int8WideTag = hn::CappedTag<int16_t, 32>;
using Int8SumTag = hn::Repartition<int32_t, Int8WideTag>;

void round_int8_row(const float* x, int64_t in, int8_t* codes, float* scale, int32_t* sum) {
  const Int8FloatTag d;
  const hn::RebindToSigned<Int8FloatTag> whole_tag;
  const hn::Rebind<int8_t, Int8FloatTag> code_tag;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  auto most = hn::Zero(d), zeros = hn::Zero(d);  // zeros: NaN after NaN or infinity
  for (int64_t i = 0; i < in; i += width) {
    const auto v = hn::LoadU(d, x + i);
    most = hn::Max(most, hn::Abs(v));
    zeros = hn::MulAdd(v, hn::Zero(d), zeros);
  }
  const float largest = hn::GetLane(hn::MaxOfLanes(d, most));
  const bool finite = hn::GetLane(hn::SumOfLanes(d, zeros)) == 0;
  const auto inverse = hn::Set(d, finite && largest > 0 ? 127 / largest : 0.0f);
  auto sums = hn::Zero(whole_tag);
  for (int64_t i = 0; i < in; i += width) {
    const auto whole =
        finite ? hn::NearestInt(hn::Mul(hn::LoadU(d, x + i), inverse)) : hn::Zero(whole_tag);
    sums = hn::Add(sums, whole);
    hn::StoreU(hn::DemoteTo(code_tag, whole), code_tag, codes + i);
  }
  *sum = hn::GetLane(hn::SumOfLanes(whole_tag, sums));
  *scale = finite ? largest / 127 : std::numeric_limits<float>::quiet_NaN();
}

template <int kRows, int kOuts>
HWY_INLINE void int8_tile(const Int8Task& task, int64_t row, int64_t out) {
  const Int8WideTag d;
  const Int8SumTag ds;
  const hn::Rebind<int8_t, Int8WideTag> bytes;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const int64_t in = task.in;
  const int8_t *x = task.x.codes + row * in, *w = task.codes + out * in;
  hn::Vec<Int8SumTag> even[kRows * kOuts], odd[kRows * kOuts];
  for (int i = 0; i < kRows * kOuts; ++i) even[i] = odd[i] = hn::Zero(ds);
  for (int64_t i = 0; i < in; i += width) {
    hn::Vec<Int8WideTag> codes[kRows];
    for (int t = 0; t < kRows; ++t) codes[t] = hn::PromoteTo(d, hn::LoadU(bytes, x + t * in + i));
    for (int o = 0; o < kOuts; ++o) {
      const auto wide = hn::PromoteTo(d, hn::LoadU(bytes, w + o * in + i));
      for (int t = 0; t < kRows; ++t)
        even[t * kOuts + o] = hn::ReorderWidenMulAccumulate(ds, wide, codes[t], even[t * kOuts + o],
                                                            odd[t * kOuts + o]);
    }
  }
  for (int t = 0; t < kRows; ++t)
    for (int o = 0; o < kOuts; ++o) {
      const int32_t exact =
          hn::GetLane(hn::SumOfLanes(ds, hn::Add(even[t * kOuts + o], odd[t * kOuts + o])));
      task.y[(row + t) * task.out + out + o] =
          std::fma(static_cast<float>(exact), task.x.scales[row + t] * task.scales[out + o],
                   task.bias ? task.bias[out + o] : 0.0f);
    }
}

void int8_outputs(const Int8Task& task, int64_t begin, int64_t end) {
  for_each_int8_tile(
      task, begin, end, [&](int64_t row, int64_t rows, int64_t out, int64_t outs) HWY_ATTR {
        if (rows == kInt8Tile)
          outs == kInt8Tile ? int8_tile<4, 4>(task, row, out) : int8_tile<4, 1>(task, row, out);
        else
          outs == kInt8Tile ? int8_tile<1, 4>(task, row, out) : int8_tile<1, 1>(task, row, out);
      });
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(round_int8_row);
HWY_EXPORT(int8_outputs);

Int8Instructions best_int8_instructions() {
#if HWY_ARCH_X86
  static const bool vnni = has_vnni() && (usable_targets() & HWY_AVX3) != 0;
#else
  static const bool vnni = false;
#endif
  return vnni ? Int8Instructions::vnni : Int8Instructions::any;
}

void round_int8_rows(ThreadPool& pool, const float* x, int64_t rows, int64_t in,
                     const Int8Rows& rounded) {
  constexpr int64_t kElements = 32768;  // fewer are not worth another thread
  parallel_for(pool, rows, 1 + kElements / in, [&](int64_t begin, int64_t end) {
    const auto round = HWY_DYNAMIC_DISPATCH(round_int8_row);
    for (int64_t t = begin; t < end; ++t)
      round(x + t * in, in, rounded.codes + t * in, rounded.scales + t, rounded.sums + t);
  });
}

void int8_product(ThreadPool& pool, const Int8Task& task, Int8Instructions instructions) {
  constexpr int64_t kCodes = 65536;  // fewer are not worth another thread
  parallel_for(pool, task.out, 1 + kCodes / (task.in * task.rows), [&](int64_t begin, int64_t end) {
    if (instructions == Int8Instructions::vnni)
      int8_outputs_with_vnni(task, begin, end);
    else
      HWY_DYNAMIC_DISPATCH(int8_outputs)(task, begin, end);
  });
}

}  // namespace artel::kernels
#endif
