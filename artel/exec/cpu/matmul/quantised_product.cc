#include "artel/exec/cpu/matmul/quantised_product.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "artel/base/error.h"
#include "artel/exec/cpu/matmul/int8_product.h"
#include "artel/tensor/dtype.h"
#include "artel/tensor/quantised.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/matmul/quantised_product.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/loops-inl.h"
#include "hwy/cache_control.h"

namespace artel::kernels {
#ifndef ARTEL_EXEC_KERNELS_QUANTISED_PRODUCT_
#define ARTEL_EXEC_KERNELS_QUANTISED_PRODUCT_

// x as whole numbers: `codes` [rows, in], and for each block its scale, [rows, blocks], and for
// each group the sum of its rounded elements, [rows, groups].
struct RoundedRows {
  int16_t* codes;
  float *scales, *sums;
};

struct ProductTask {
  const QuantisedShape& shape;
  const QuantisedMemory& matrix;
  RoundedRows x;
  const float* bias;
  float* y;
};

#endif
}  // namespace artel::kernels

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

// Sixteen codes are the low or the high halves of the bytes of a block.
using CodeTag = hn::CappedTag<int16_t, 16>;
using SumTag = hn::Repartition<int32_t, CodeTag>;
using BlockTag = hn::Repartition<float, CodeTag>;

void round_row(const float* x, int64_t in, int64_t group, int16_t* codes, float* scales,
               float* sums) {
  std::fill_n(sums, in / group, 0.0f);
  for (int64_t at = 0; at < in; at += kQuantisedBlock) {
    const float most = fold(
        kQuantisedBlock, 0.0f,
        [=](auto d, int64_t i) HWY_ATTR { return hn::Abs(hn::LoadU(d, x + at + i)); },
        [](auto a, auto b) HWY_ATTR { return hn::Max(a, b); },
        [](auto d, auto v) HWY_ATTR { return hn::MaxOfLanes(d, v); });
    const float inverse = most > 0 ? 127 / most : 0, scale = most / 127;
    scales[at / kQuantisedBlock] = scale;
    int32_t sum = 0;
    for_each_vector(kQuantisedBlock, [&](auto d, int64_t i) HWY_ATTR {
      const auto whole = hn::NearestInt(hn::Mul(hn::LoadU(d, x + at + i), hn::Set(d, inverse)));
      const hn::RebindToSigned<decltype(d)> whole_tag;
      const hn::Rebind<int16_t, decltype(d)> code_tag;
      hn::StoreU(hn::DemoteTo(code_tag, whole), code_tag, codes + at + i);
      sum += hn::GetLane(hn::SumOfLanes(whole_tag, whole));
    });
    sums[at / group] += scale * static_cast<float>(sum);
  }
}

void halves_to_floats(const uint16_t* halves, int64_t count, float* floats) {
  for_each_vector(count, [&](auto d, int64_t i) HWY_ATTR {
    const hn::Rebind<hwy::float16_t, decltype(d)> half_tag;
    hn::StoreU(
        hn::PromoteTo(d, hn::LoadU(half_tag, reinterpret_cast<const hwy::float16_t*>(halves + i))),
        d, floats + i);
  });
}

// Products of kOut rows of the matrix, of which `codes` is the first, with kRows rows of x: several
// at once hide the latency of additions. The bits of each do not depend on that.
template <int kBits, int kOut, int kRows>
HWY_INLINE void quantised_row_products(const QuantisedShape& shape, const uint8_t* codes,
                                       const float* scales, const RoundedRows& x, float* sums) {
  const CodeTag d;
  const SumTag ds;
  const BlockTag df;
  const hn::Rebind<uint8_t, CodeTag> bytes;
  const hn::Rebind<int8_t, CodeTag> signed_bytes;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  const int64_t blocks = shape.in / kQuantisedBlock, group_blocks = shape.group / kQuantisedBlock;
  const int64_t groups = shape.groups(), row_bytes = shape.in * kBits / 8;
  constexpr int64_t kHalfBlock = kQuantisedBlock / 2, kBlockBytes = kQuantisedBlock * kBits / 8;
  hn::Vec<BlockTag> totals[kOut * kRows];
  for (auto& total : totals) total = hn::Zero(df);
  for (int64_t block = 0; block < blocks; ++block, codes += kBlockBytes)
    for (int o = 0; o < kOut; ++o) {
      hn::Vec<SumTag> even[kRows], odd[kRows];
      for (int t = 0; t < kRows; ++t) even[t] = odd[t] = hn::Zero(ds);
      for (int64_t i = 0; i < kHalfBlock; i += width) {
        hn::Vec<CodeTag> low, high;
        const uint8_t* at = codes + o * row_bytes + i;
        // Several short streams are not recognised as such: asks for the rows that follow.
        if constexpr (kOut > 1) hwy::Prefetch(at + kOut * row_bytes);
        if constexpr (kBits == 4) {
          const auto both = hn::PromoteTo(d, hn::LoadU(bytes, at));
          low = hn::And(both, hn::Set(d, 15));
          high = hn::ShiftRight<4>(both);
        } else {
          const auto* from = reinterpret_cast<const int8_t*>(at);
          low = hn::PromoteTo(d, hn::LoadU(signed_bytes, from));
          high = hn::PromoteTo(d, hn::LoadU(signed_bytes, from + kHalfBlock));
        }
        for (int t = 0; t < kRows; ++t) {
          const int16_t* row = x.codes + t * shape.in + block * kQuantisedBlock + i;
          even[t] = hn::ReorderWidenMulAccumulate(ds, low, hn::LoadU(d, row), even[t], odd[t]);
          even[t] = hn::ReorderWidenMulAccumulate(ds, high, hn::LoadU(d, row + kHalfBlock), even[t],
                                                  odd[t]);
        }
      }
      const float scale = scales[o * groups + block / group_blocks];
      for (int t = 0; t < kRows; ++t)
        totals[o * kRows + t] =
            hn::MulAdd(hn::ConvertTo(df, hn::Add(even[t], odd[t])),
                       hn::Set(df, scale * x.scales[t * blocks + block]), totals[o * kRows + t]);
    }
  for (int i = 0; i < kOut * kRows; ++i) sums[i] = hn::GetLane(hn::SumOfLanes(df, totals[i]));
}

// Scales and offsets of a few rows of the matrix as f32.
struct RowFactors {
  std::vector<float> scales, offsets;
};

// kOut rows of the matrix from `row` on, with all rows of x.
template <int kBits, int kOut>
HWY_INLINE void product_of_rows(const ProductTask& task, int64_t row, RowFactors& factors) {
  const QuantisedShape& shape = task.shape;
  const int64_t groups = shape.groups(), blocks = shape.in / kQuantisedBlock;
  float *scales = factors.scales.data(), *offsets = factors.offsets.data();
  halves_to_floats(task.matrix.scales + row * groups, kOut * groups, scales);
  if (shape.offsets)
    halves_to_floats(task.matrix.offsets + row * groups, kOut * groups, offsets);
  else
    for (int64_t g = 0; g < kOut * groups; ++g) offsets[g] = -8 * scales[g];
  const auto* codes =
      reinterpret_cast<const uint8_t*>(task.matrix.codes) + row * shape.in * kBits / 8;
  const auto run = [&](auto at_once, int64_t first) HWY_ATTR {
    constexpr int kRows = decltype(at_once)::value;
    const RoundedRows x = {task.x.codes + first * shape.in, task.x.scales + first * blocks,
                           task.x.sums + first * groups};
    float sums[kOut * kRows];
    quantised_row_products<kBits, kOut, kRows>(shape, codes, scales, x, sums);
    for (int o = 0; o < kOut; ++o)
      for (int t = 0; t < kRows; ++t) {
        float y = sums[o * kRows + t];
        if (kBits == 4)
          y += fold_sum(groups, [&](auto d, int64_t g) HWY_ATTR {
            return hn::Mul(hn::LoadU(d, offsets + o * groups + g),
                           hn::LoadU(d, x.sums + t * groups + g));
          });
        task.y[(first + t) * shape.out + row + o] = y + (task.bias ? task.bias[row + o] : 0.0f);
      }
  };
  int64_t t = 0;
  for (; t + 4 <= shape.rows; t += 4) run(std::integral_constant<int, 4>(), t);
  for (; t < shape.rows; ++t) run(std::integral_constant<int, 1>(), t);
}

template <int kBits, int kOut>
HWY_INLINE void product_of_range(const ProductTask& task, int64_t begin, int64_t end) {
  const auto factors = static_cast<size_t>(kOut * task.shape.groups());
  RowFactors memory = {std::vector<float>(factors), std::vector<float>(factors)};
  int64_t row = begin;
  for (; row + kOut <= end; row += kOut) product_of_rows<kBits, kOut>(task, row, memory);
  for (; row < end; ++row) product_of_rows<kBits, 1>(task, row, memory);
}

template <int kBits>
HWY_INLINE void product_of_bits(const ProductTask& task, int64_t begin, int64_t end) {
  // Four sums are in flight either way; sixteen would not fit the registers.
  if (task.shape.rows >= 4)
    product_of_range<kBits, 1>(task, begin, end);
  else
    product_of_range<kBits, 4>(task, begin, end);
}

void quantised_products(const ProductTask& task, int64_t begin, int64_t end) {
  if (task.shape.bits == 8)
    product_of_bits<8>(task, begin, end);
  else
    product_of_bits<4>(task, begin, end);
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(round_row);
HWY_EXPORT(halves_to_floats);
HWY_EXPORT(quantised_products);

namespace {

constexpr int64_t kRoundedAtOnce = 32768;  // elements; fewer are not worth another thread

size_t int8_workspace_bytes(const QuantisedShape& shape) {
  const auto rows = static_cast<size_t>(shape.rows);
  return rows * (static_cast<size_t>(shape.in) + sizeof(float) + sizeof(int32_t)) +
         static_cast<size_t>(shape.out) * sizeof(float);
}

void run_int8(ThreadPool& pool, const QuantisedShape& shape, const float* x,
              const QuantisedMemory& matrix, const float* bias, float* y, std::byte* workspace) {
  Int8Rows rounded;
  rounded.scales = reinterpret_cast<float*>(workspace);
  rounded.sums = reinterpret_cast<int32_t*>(rounded.scales + shape.rows);
  auto* const scales = reinterpret_cast<float*>(rounded.sums + shape.rows);
  rounded.codes = reinterpret_cast<int8_t*>(scales + shape.out);
  round_int8_rows(pool, x, shape.rows, shape.in, rounded);
  HWY_DYNAMIC_DISPATCH(halves_to_floats)(matrix.scales, shape.out, scales);
  int8_product(pool, {shape.rows, shape.out, shape.in, rounded,
                      reinterpret_cast<const int8_t*>(matrix.codes), scales, bias, y});
}

}  // namespace

size_t QuantisedProduct::workspace_bytes() const {
  if (shape_.rounds_rows()) return int8_workspace_bytes(shape_);
  const auto blocks = static_cast<size_t>(shape_.in / kQuantisedBlock);
  return static_cast<size_t>(shape_.rows) *
         (static_cast<size_t>(shape_.in) * sizeof(int16_t) +
          (blocks + static_cast<size_t>(shape_.groups())) * sizeof(float));
}

void QuantisedProduct::run(ThreadPool& pool, const float* x, const QuantisedMemory& matrix,
                           const float* bias, float* y, std::byte* workspace) const {
  if (shape_.rounds_rows()) return run_int8(pool, shape_, x, matrix, bias, y, workspace);
  const int64_t in = shape_.in, blocks = in / kQuantisedBlock, groups = shape_.groups();
  RoundedRows rounded;
  rounded.codes = reinterpret_cast<int16_t*>(workspace);
  rounded.scales = reinterpret_cast<float*>(rounded.codes + shape_.rows * in);
  rounded.sums = rounded.scales + shape_.rows * blocks;
  parallel_for(pool, shape_.rows, 1 + kRoundedAtOnce / in, [&](int64_t begin, int64_t end) {
    const auto round = HWY_DYNAMIC_DISPATCH(round_row);
    for (int64_t t = begin; t < end; ++t)
      round(x + t * in, in, shape_.group, rounded.codes + t * in, rounded.scales + t * blocks,
            rounded.sums + t * groups);
  });
  const ProductTask task = {shape_, matrix, rounded, bias, y};
  constexpr int64_t kCodes = 65536;  // fewer are not worth another thread
  parallel_for(pool, shape_.out, 1 + kCodes / (in * shape_.rows), [&](int64_t begin, int64_t end) {
    HWY_DYNAMIC_DISPATCH(quantised_products)(task, begin, end);
  });
}

void quantised_rows(ThreadPool& pool, const QuantisedShape& shape, int64_t count,
                    const int32_t* indices, const QuantisedMemory& matrix, float* y) {
  const int64_t groups = shape.groups(), half = kQuantisedBlock / 2;
  parallel_for(pool, count, 16, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t row = indices[i];
      require(row >= 0 && row < shape.out, ErrorKind::invalid_argument,
              "[embedding] index: got {}, expected 0 to {}", row, shape.out - 1);
      const auto* codes =
          reinterpret_cast<const uint8_t*>(matrix.codes) + row * shape.in * shape.bits / 8;
      for (int64_t c = 0; c < shape.in; ++c) {
        const int64_t g = row * groups + c / shape.group;
        const float scale = half_to_float(matrix.scales[g]);
        if (shape.bits == 8) {
          y[i * shape.in + c] = scale * static_cast<float>(static_cast<int8_t>(codes[c]));
          continue;
        }
        const uint8_t both = codes[c / kQuantisedBlock * half + c % half];
        const int code = c % kQuantisedBlock < half ? both & 15 : both >> 4;
        y[i * shape.in + c] =
            shape.offsets ? scale * static_cast<float>(code) + half_to_float(matrix.offsets[g])
                          : scale * static_cast<float>(code - 8);
      }
    }
  });
}

}  // namespace artel::kernels
#endif
