// Declarations that precede the source of every OpenCL program.
#pragma once

#include <string_view>

namespace artel::opencl {

// Memory arguments are a buffer and an offset in bytes (opencl/device.h): IN(float, x) declares the
// pair, USE_IN(float, x) the pointer. Work groups that reduce have 64 items in one dimension.
inline constexpr std::string_view kCommonSource = R"(
#define IN(type, x) __global const type* x##_memory, long x##_at
#define OUT(type, x) __global type* x##_memory, long x##_at
#define USE_IN(type, x) \
  __global const type* x = (__global const type*)((__global const char*)x##_memory + x##_at)
#define USE_OUT(type, x) \
  __global type* x = (__global type*)((__global char*)x##_memory + x##_at)

/* Sums and maxima over a work group, in a fixed order. */
float group_sum(__local float* scratch, float value) {
  const int l = get_local_id(0);
  scratch[l] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = 32; half_size > 0; half_size /= 2) {
    if (l < half_size) scratch[l] += scratch[l + half_size];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float result = scratch[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return result;
}

/* The larger of two numbers; NaN if one is NaN. */
float larger_of(float a, float b) { return isnan(a) ? a : isnan(b) ? b : fmax(a, b); }
float smaller_of(float a, float b) { return isnan(a) ? a : isnan(b) ? b : fmin(a, b); }

float group_max(__local float* scratch, float value) {
  const int l = get_local_id(0);
  scratch[l] = value;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (int half_size = 32; half_size > 0; half_size /= 2) {
    if (l < half_size) scratch[l] = larger_of(scratch[l], scratch[l + half_size]);
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  const float result = scratch[0];
  barrier(CLK_LOCAL_MEM_FENCE);
  return result;
}

float sigmoid_of(float x) { return 1.0f / (1.0f + exp(-x)); }

/* The normal distribution: probability of less than x, and density. */
float normal_below(float x) { return 0.5f * erfc(-0.70710678f * x); }
float normal_density(float x) { return 0.39894228f * exp(-0.5f * x * x); }
float gelu_of(float x) { return x * normal_below(x); }
float gelu_slope(float x) { return normal_below(x) + x * normal_density(x); }

/* x * sigmoid(v) with v = 2 sqrt(2/pi) (x + 0.044715 x^3), and its slope. */
float gelu_tanh_of(float x) {
  return x * sigmoid_of(1.5957691216f * x * (1.0f + 0.044715f * x * x));
}
float gelu_tanh_slope(float x) {
  const float s = sigmoid_of(1.5957691216f * x * (1.0f + 0.044715f * x * x));
  const float square = fmin(x * x, 1e4f);
  return s + x * (1.5957691216f + 3.0f * 0.044715f * 1.5957691216f * square) * s * (1.0f - s);
}

/* Word `number` of the stream of random numbers with this key: Philox 4x32-10 (base/random.h). */
uint random_word(ulong key, ulong number) {
  const ulong counter = number / 4;
  uint k0 = (uint)key, k1 = (uint)(key >> 32);
  uint c0 = (uint)counter, c1 = (uint)(counter >> 32), c2 = 0, c3 = 0;
  for (int round = 0; round < 10; ++round) {
    const ulong p0 = 0xD2511F53ul * c0, p1 = 0xCD9E8D57ul * c2;
    const uint n0 = (uint)(p1 >> 32) ^ c1 ^ k0, n2 = (uint)(p0 >> 32) ^ c3 ^ k1;
    c0 = n0;
    c1 = (uint)p1;
    c2 = n2;
    c3 = (uint)p0;
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  const int which = (int)(number % 4);
  return which == 0 ? c0 : which == 1 ? c1 : which == 2 ? c2 : c3;
}

ulong split_mix(ulong x) {
  x += 0x9e3779b97f4a7c15ul;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ul;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebul;
  return x ^ (x >> 31);
}
/* mix_key({a, b}) of base/random.h */
ulong mix_key(ulong a, ulong b) {
  const ulong key = split_mix(0x6172746c2d6b6579ul ^ split_mix(a));
  return split_mix(key ^ split_mix(b));
}

/* The factor of an element with dropout: 0, or 1 / (1 - probability). */
float kept_factor(ulong key, ulong number, int threshold, float scale) {
  return (int)(random_word(key, number) >> 8) < threshold ? 0.0f : scale;
}
)";

}  // namespace artel::opencl
