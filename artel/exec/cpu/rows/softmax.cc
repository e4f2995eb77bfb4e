#include "artel/exec/cpu/rows/softmax.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/rows/softmax.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/rows/row_softmax-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

void softmax_row(int64_t n, const float* x, float* y) {
  const float largest = row_max(n, x);
  const float sum = fold_sum(n, [=](auto d, int64_t i) HWY_ATTR {
    const auto e = exp(d, hn::Sub(hn::LoadU(d, x + i), hn::Set(d, largest)));
    hn::StoreU(e, d, y + i);
    return e;
  });
  const float scale = 1.0f / sum;
  for_each_vector(n, [=](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Mul(hn::LoadU(d, y + i), hn::Set(d, scale)), d, y + i);
  });
}

void softmax_backward_row(int64_t n, const float* dy, const float* y, float* dx) {
  const float dot = fold_sum(n, [=](auto d, int64_t i) HWY_ATTR {
    return hn::Mul(hn::LoadU(d, dy + i), hn::LoadU(d, y + i));
  });
  for_each_vector(n, [=](auto d, int64_t i) HWY_ATTR {
    const auto rest = hn::Sub(hn::LoadU(d, dy + i), hn::Set(d, dot));
    hn::StoreU(hn::Mul(hn::LoadU(d, y + i), rest), d, dx + i);
  });
}

void log_softmax_row(int64_t n, const float* x, float* y) {
  const LogSum sum = row_log_sum(n, x);
  for_each_vector(n, [=](auto d, int64_t i) HWY_ATTR {
    const auto shifted = hn::Sub(hn::LoadU(d, x + i), hn::Set(d, sum.largest));
    hn::StoreU(hn::Sub(shifted, hn::Set(d, sum.rest)), d, y + i);
  });
}

void log_softmax_backward_row(int64_t n, const float* dy, const float* y, float* dx) {
  const float sum = fold_sum(n, [=](auto d, int64_t i) HWY_ATTR { return hn::LoadU(d, dy + i); });
  for_each_vector(n, [=](auto d, int64_t i) HWY_ATTR {
    const auto probability = exp(d, hn::LoadU(d, y + i));
    hn::StoreU(hn::NegMulAdd(probability, hn::Set(d, sum), hn::LoadU(d, dy + i)), d, dx + i);
  });
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(softmax_row);
HWY_EXPORT(softmax_backward_row);
HWY_EXPORT(log_softmax_row);
HWY_EXPORT(log_softmax_backward_row);

namespace {

// row(offset) for the first element of each row.
template <typename Row>
void for_each_row(ThreadPool& pool, int64_t rows, int64_t columns, const Row& row) {
  parallel_for(pool, rows, std::max<int64_t>(1, 4096 / (columns + 1)),
               [&](int64_t begin, int64_t end) {
                 for (int64_t r = begin; r < end; ++r) row(r * columns);
               });
}

}  // namespace

void softmax(ThreadPool& pool, int64_t rows, int64_t columns, const float* x, float* y) {
  const auto row = HWY_DYNAMIC_DISPATCH(softmax_row);
  for_each_row(pool, rows, columns, [=](int64_t at) { row(columns, x + at, y + at); });
}

void softmax_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                      const float* y, float* dx) {
  const auto row = HWY_DYNAMIC_DISPATCH(softmax_backward_row);
  for_each_row(pool, rows, columns, [=](int64_t at) { row(columns, dy + at, y + at, dx + at); });
}

void log_softmax(ThreadPool& pool, int64_t rows, int64_t columns, const float* x, float* y) {
  const auto row = HWY_DYNAMIC_DISPATCH(log_softmax_row);
  for_each_row(pool, rows, columns, [=](int64_t at) { row(columns, x + at, y + at); });
}

void log_softmax_backward(ThreadPool& pool, int64_t rows, int64_t columns, const float* dy,
                          const float* y, float* dx) {
  const auto row = HWY_DYNAMIC_DISPATCH(log_softmax_backward_row);
  for_each_row(pool, rows, columns, [=](int64_t at) { row(columns, dy + at, y + at, dx + at); });
}

}  // namespace artel::kernels
#endif
