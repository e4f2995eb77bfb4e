#include "artel/exec/cpu/elementwise/copy.h"

#include <algorithm>
#include <array>

#include "artel/base/error.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/exec/cpu/elementwise/copy.cc"
#include "hwy/foreach_target.h"

#include "artel/exec/cpu/elementwise/loops-inl.h"

HWY_BEFORE_NAMESPACE();
namespace artel::kernels::HWY_NAMESPACE {

void add_range(const float* x, float* y, int64_t n) {
  for_each_vector(n, [=](auto d, int64_t i) HWY_ATTR {
    hn::StoreU(hn::Add(hn::LoadU(d, y + i), hn::LoadU(d, x + i)), d, y + i);
  });
}

// Four rows of four.
HWY_INLINE void transpose_block(const float* x, int64_t x_pitch, float* y, int64_t y_pitch) {
#if HWY_TARGET == HWY_SCALAR
  for (int64_t r = 0; r < 4; ++r)
    for (int64_t c = 0; c < 4; ++c) y[r * y_pitch + c] = x[c * x_pitch + r];
#else
  const FourTag d;
  const hn::RepartitionToWide<FourTag> pairs;
  const auto a = hn::LoadU(d, x), b = hn::LoadU(d, x + x_pitch);
  const auto c = hn::LoadU(d, x + 2 * x_pitch), e = hn::LoadU(d, x + 3 * x_pitch);
  const auto ab = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ce = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ab_upper = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_upper = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab, ce)), d, y);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab, ce)), d, y + y_pitch);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_upper, ce_upper)), d, y + 2 * y_pitch);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_upper, ce_upper)), d, y + 3 * y_pitch);
#endif
}

// y[r * kCopyTile + c] = x[c * x_pitch + r], each line of x read once.
void transpose_full_tile(const float* x, int64_t x_pitch, float* y) {
  for (int64_t c = 0; c < kCopyTile; c += 4) {
    for (int64_t r = 0; r < kCopyTile; r += 4)
      transpose_block(x + c * x_pitch + r, x_pitch, y + r * kCopyTile + c, kCopyTile);
  }
}

}  // namespace artel::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::kernels {

HWY_EXPORT(add_range);
HWY_EXPORT(transpose_full_tile);

namespace {

constexpr int64_t kGrain = 16384;  // elements that are worth a thread

// One row of y; x is walked at a stride.
void copy_row(int64_t n, const float* x, int64_t stride, float* y) {
  if (stride == 1) {
    std::copy_n(x, n, y);
  } else if (stride == 0) {
    std::fill_n(y, n, *x);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i * stride];
  }
}

// y[r * y_pitch + c] = x[c * x_pitch + r]. A full tile passes through a buffer: with pitches
// that are powers of two the lines of y would evict one another before they are complete.
void transpose_tile(int64_t rows, int64_t columns, const float* x, int64_t x_pitch, float* y,
                    int64_t y_pitch) {
  if (rows < kCopyTile || columns < kCopyTile) {
    for (int64_t r = 0; r < rows; ++r) copy_row(columns, x + r, x_pitch, y + r * y_pitch);
    return;
  }
  alignas(64) std::array<float, kCopyTile * kCopyTile> buffer;
  HWY_DYNAMIC_DISPATCH(transpose_full_tile)(x, x_pitch, buffer.data());
  for (int64_t r = 0; r < kCopyTile; ++r)
    copy_row(kCopyTile, buffer.data() + r * kCopyTile, 1, y + r * y_pitch);
}

}  // namespace

CopyKernel::CopyKernel(const std::vector<int64_t>& extents, const std::vector<int64_t>& x_strides,
                       const std::vector<int64_t>& y_strides) {
  require(x_strides.size() == extents.size() && y_strides.size() == extents.size(),
          ErrorKind::internal, "[copy] strides: got {} and {}, expected {}", x_strides.size(),
          y_strides.size(), extents.size());
  std::vector<Axis> axes;
  for (size_t i = 0; i < extents.size(); ++i)
    if (extents[i] != 1) axes.push_back({extents[i], x_strides[i], y_strides[i]});
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.y > b.y; });
  for (const Axis& axis : axes) {
    if (!outer_.empty() && outer_.back().x == axis.x * axis.extent &&
        outer_.back().y == axis.y * axis.extent) {
      outer_.back() = {outer_.back().extent * axis.extent, axis.x, axis.y};
    } else {
      outer_.push_back(axis);
    }
  }
  if (!outer_.empty()) {
    columns_ = outer_.back();
    outer_.pop_back();
  }
  auto rows = std::find_if(outer_.begin(), outer_.end(), [](const Axis& a) { return a.x == 1; });
  transposed_ = rows != outer_.end() && columns_.y == 1 && columns_.x > 1;
  if (!transposed_ && !outer_.empty()) rows = std::prev(outer_.end());
  if (rows != outer_.end()) {
    rows_ = *rows;
    outer_.erase(rows);
  }
  outer_count_ = 1;
  for (const Axis& axis : outer_) outer_count_ *= axis.extent;
}

void CopyKernel::copy_rows(int64_t begin, int64_t end, const float* x, float* y) const {
  if (transposed_) {
    for (int64_t r = begin; r < end; r += kCopyTile) {
      for (int64_t c = 0; c < columns_.extent; c += kCopyTile) {
        transpose_tile(std::min(kCopyTile, end - r), std::min(kCopyTile, columns_.extent - c),
                       x + r + c * columns_.x, columns_.x, y + r * rows_.y + c, rows_.y);
      }
    }
    return;
  }
  for (int64_t r = begin; r < end; ++r) {
    const float* from = x + r * rows_.x;
    float* to = y + r * rows_.y;
    if (columns_.y == 1) {
      copy_row(columns_.extent, from, columns_.x, to);
    } else {
      for (int64_t c = 0; c < columns_.extent; ++c) to[c * columns_.y] = from[c * columns_.x];
    }
  }
}

void CopyKernel::run(ThreadPool& pool, const float* x, float* y) const {
  if (columns_.extent == 0) return;
  // Units of work: rows of all outer indices, in tiles where they are transposed.
  const int64_t unit = transposed_ ? kCopyTile : std::max<int64_t>(1, kGrain / columns_.extent / 4);
  const int64_t units = (rows_.extent + unit - 1) / unit;
  const int64_t grain = std::max<int64_t>(1, kGrain / (unit * columns_.extent));
  parallel_for(pool, outer_count_ * units, grain, [&](int64_t begin, int64_t end) {
    for (int64_t task = begin; task < end; ++task) {
      int64_t index = task / units, x_offset = 0, y_offset = 0;
      for (size_t axis = outer_.size(); axis-- > 0; index /= outer_[axis].extent) {
        x_offset += index % outer_[axis].extent * outer_[axis].x;
        y_offset += index % outer_[axis].extent * outer_[axis].y;
      }
      const int64_t first = task % units * unit;
      copy_rows(first, std::min(rows_.extent, first + unit), x + x_offset, y + y_offset);
    }
  });
}

void add_into(ThreadPool& pool, int64_t n, const float* x, float* y) {
  const auto range = HWY_DYNAMIC_DISPATCH(add_range);
  parallel_for(pool, n, kGrain,
               [=](int64_t begin, int64_t end) { range(x + begin, y + begin, end - begin); });
}

}  // namespace artel::kernels
#endif
