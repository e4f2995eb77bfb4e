// Vectorised kernels of the update rules, compiled for each instruction set and chosen at run time.
// Every element is computed by the same instructions at any position, so a range can be split
// anywhere without changing a bit.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/optim/norms.h"

namespace artel::optim::kernels {

// Applied to a gradient when it is read: clamp(scale * g, -limit, limit). Limit 0 means none.
struct GradientFilter {
  float scale = 1;
  float limit = 0;
};

inline constexpr size_t kMostSlots = 3;

// A range of one parameter with its gradient and state.
struct Range {
  float* parameter;
  const float* gradient;
  std::array<float*, kMostSlots> slots;
  size_t elements;
  GradientFilter filter;
};

// g += decay * p;  p -= rate * g
struct SgdStep {
  float rate, decay;
};
void sgd(const SgdStep& step, const Range& range);

// g += decay * p;  m = momentum * m + fresh * g;  p -= rate * (nesterov ? g + momentum * m : m)
struct MomentumStep {
  float rate, decay, momentum, fresh;
  bool nesterov;
};
void momentum(const MomentumStep& step, const Range& range);

// g += decay * p;  s += g^2;  p -= rate * g / (sqrt(s) + epsilon)
struct AdagradStep {
  float rate, decay, epsilon;
};
void adagrad(const AdagradStep& step, const Range& range);

// g += decay * p;  s = smoothing * s + (1 - smoothing) * g^2;  d = g / (sqrt(s) + epsilon), or when
// centered d = g / (sqrt(s - a^2) + epsilon) with a the average of g;  with momentum b = momentum *
// b + d;  p -= rate * (b or d). The slots are s, then a if centered, then b with momentum.
struct RmsPropStep {
  float rate, decay, smoothing, epsilon, momentum;
  bool centered;
};
void rmsprop(const RmsPropStep& step, const Range& range);

// The moments of Adam and LAMB: m = beta1 * m + (1 - beta1) * g;  v likewise of g^2.
struct Moments {
  float beta1, beta2, epsilon;
  float correction1, correction2;  // 1 / (1 - beta1^step), 1 / sqrt(1 - beta2^step)
};

// g += decay * p;  moments;  p = keep * p - rate * correction1 * m / (correction2 * sqrt(v) +
// epsilon)
struct AdamStep {
  Moments moments;
  float rate, decay, keep;
};
void adam(const AdamStep& step, const Range& range);

// The LAMB direction is u = correction1 * m / (correction2 * sqrt(v) + epsilon) + decay * p.
struct LambStep {
  Moments moments;
  float decay;
};
// Updates the moments and sums squares; `lamb_apply` then does p -= rate * u.
Norms lamb_moments(const LambStep& step, const Range& range);
void lamb_apply(const LambStep& step, float rate, const Range& range);

// The sum of squares of at most one chunk of filtered values.
double squares(const float* values, size_t count, GradientFilter filter);

// Length of the chunks of sums: 16 KiB of floats.
inline constexpr size_t kChunk = kNormChunk;

// The results of body(begin, count) for fixed chunks of [0, elements).
template <typename Body>
auto for_chunks(ThreadPool& pool, size_t elements, const Body& body) {
  std::vector<decltype(body(0, 0))> partial((elements + kChunk - 1) / kChunk);
  parallel_for(pool, static_cast<int64_t>(partial.size()), 4, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const size_t first = static_cast<size_t>(i) * kChunk;
      partial[i] = body(first, std::min(kChunk, elements - first));
    }
  });
  return partial;
}

// Adds the terms in order, so the sum does not depend on the number of threads.
template <typename Term>
Term sum_of(const std::vector<Term>& terms) {
  Term sum{};
  for (const Term& term : terms) sum += term;
  return sum;
}

}  // namespace artel::optim::kernels
