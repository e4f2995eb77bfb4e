// Int8 products with AVX-512 VNNI. Highway has no target for it, so this file uses intrinsics.
#include "artel/exec/cpu/matmul/int8_tiles.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <cmath>

namespace artel::kernels {
namespace {

constexpr int64_t kVnniBytes = 64;

// With a mask of all lanes, because GCC 12 warns of its own definition without a mask.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512vnni,fma")]] inline __m256i add_halves(__m512i v) {
  return _mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(0xff, v, 0),
                          _mm512_maskz_extracti64x4_epi64(0xff, v, 1));
}

// The sums of the lanes of four vectors.
[[gnu::target("avx512f,avx512bw,avx512vl,avx512vnni,fma")]] inline __m128i lane_sums(__m512i a,
                                                                                     __m512i b,
                                                                                     __m512i c,
                                                                                     __m512i d) {
  const __m256i sums = _mm256_hadd_epi32(_mm256_hadd_epi32(add_halves(a), add_halves(b)),
                                         _mm256_hadd_epi32(add_halves(c), add_halves(d)));
  return _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
}

[[gnu::target("avx512f,avx512bw,avx512vl,avx512vnni,fma")]] inline int32_t total(__m512i v) {
  return _mm_cvtsi128_si32(lane_sums(v, v, v, v));
}

// The instruction multiplies unsigned with signed bytes, so each code of w gets 128 more, and 128
// times the sum of the codes of x is subtracted at the end.
template <int kRows, int kOuts>
[[gnu::target("avx512f,avx512bw,avx512vl,avx512vnni,fma")]] void vnni_tile(const Int8Task& task,
                                                                           int64_t row,
                                                                           int64_t out) {
  const int64_t in = task.in, whole = in / kVnniBytes * kVnniBytes;
  const int8_t *x = task.x.codes + row * in, *w = task.codes + out * in;
  const __m512i flip = _mm512_set1_epi8(-128);
  __m512i sums[kRows][kOuts];
  for (int t = 0; t < kRows; ++t)
    for (int o = 0; o < kOuts; ++o) sums[t][o] = _mm512_setzero_si512();
  for (int64_t i = 0; i < whole; i += kVnniBytes) {
    __m512i codes[kRows];
    for (int t = 0; t < kRows; ++t) codes[t] = _mm512_loadu_si512(x + t * in + i);
    for (int o = 0; o < kOuts; ++o) {
      // Prefetches the next rows, because processors do not detect several short streams.
      if (kRows == 1) _mm_prefetch(w + (o + kOuts) * in + i, _MM_HINT_T0);
      const __m512i more = _mm512_xor_si512(_mm512_loadu_si512(w + o * in + i), flip);
      for (int t = 0; t < kRows; ++t) sums[t][o] = _mm512_dpbusd_epi32(sums[t][o], more, codes[t]);
    }
  }
  if (whole < in) {  // half a vector; zeros of x make the rest of w irrelevant
    const __mmask64 half = 0xffffffff;
    for (int o = 0; o < kOuts; ++o) {
      const __m512i more =
          _mm512_xor_si512(_mm512_maskz_loadu_epi8(half, w + o * in + whole), flip);
      for (int t = 0; t < kRows; ++t)
        sums[t][o] = _mm512_dpbusd_epi32(sums[t][o], more,
                                         _mm512_maskz_loadu_epi8(half, x + t * in + whole));
    }
  }
  for (int t = 0; t < kRows; ++t) {
    float* const y = task.y + (row + t) * task.out + out;
    const float scale = task.x.scales[row + t];
    const int32_t excess = 128 * task.x.sums[row + t];
    if constexpr (kOuts == kInt8Tile) {
      const __m128i exact = _mm_sub_epi32(lane_sums(sums[t][0], sums[t][1], sums[t][2], sums[t][3]),
                                          _mm_set1_epi32(excess));
      const __m128 scales = _mm_mul_ps(_mm_set1_ps(scale), _mm_loadu_ps(task.scales + out));
      const __m128 bias = task.bias ? _mm_loadu_ps(task.bias + out) : _mm_setzero_ps();
      _mm_storeu_ps(y, _mm_fmadd_ps(_mm_cvtepi32_ps(exact), scales, bias));
    } else {
      const int32_t exact = total(sums[t][0]) - excess;
      *y = std::fma(static_cast<float>(exact), scale * task.scales[out],
                    task.bias ? task.bias[out] : 0.0F);
    }
  }
}

}  // namespace

void int8_outputs_with_vnni(const Int8Task& task, int64_t begin, int64_t end) {
  for_each_int8_tile(task, begin, end, [&](int64_t row, int64_t rows, int64_t out, int64_t outs) {
    if (rows == kInt8Tile)
      outs == kInt8Tile ? vnni_tile<4, 4>(task, row, out) : vnni_tile<4, 1>(task, row, out);
    else
      outs == kInt8Tile ? vnni_tile<1, 4>(task, row, out) : vnni_tile<1, 1>(task, row, out);
  });
}

bool has_vnni() {
  return __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
         __builtin_cpu_supports("avx512vnni") && __builtin_cpu_supports("fma");
}

}  // namespace artel::kernels

#else

#include "artel/base/error.h"

namespace artel::kernels {

void int8_outputs_with_vnni(const Int8Task&, int64_t, int64_t) {
  fail(ErrorKind::unsupported, "AVX-512 VNNI: this processor does not have it");
}

bool has_vnni() { return false; }

}  // namespace artel::kernels

#endif
