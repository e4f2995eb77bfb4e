#include "artel/transfer/distances.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/transfer/distances.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace artel::transfer::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Float = hn::ScalableTag<float>;
constexpr int64_t kSideBySide = 4;  // queries per read of a vector

void Distances(const DistanceBlock& block) {
  constexpr Float kFloat;
  const auto lanes = static_cast<int64_t>(hn::Lanes(kFloat));
  const int64_t width = block.width;
  for (int64_t query = 0; query < block.query_count; query += kSideBySide) {
    const float* q[kSideBySide];
    for (int64_t j = 0; j < kSideBySide; ++j)  // repeats the last query at the end
      q[j] = block.queries + std::min(query + j, block.query_count - 1) * width;
    for (int64_t row = 0; row < block.vector_count; ++row) {
      const float* const v = block.vectors + row * width;
      auto s0 = hn::Zero(kFloat), s1 = s0, s2 = s0, s3 = s0;
      int64_t i = 0;
      for (; i + lanes <= width; i += lanes) {
        const auto x = hn::LoadU(kFloat, v + i);
        const auto d0 = hn::Sub(x, hn::LoadU(kFloat, q[0] + i));
        const auto d1 = hn::Sub(x, hn::LoadU(kFloat, q[1] + i));
        const auto d2 = hn::Sub(x, hn::LoadU(kFloat, q[2] + i));
        const auto d3 = hn::Sub(x, hn::LoadU(kFloat, q[3] + i));
        s0 = hn::MulAdd(d0, d0, s0);
        s1 = hn::MulAdd(d1, d1, s1);
        s2 = hn::MulAdd(d2, d2, s2);
        s3 = hn::MulAdd(d3, d3, s3);
      }
      float sums[kSideBySide] = {
          hn::GetLane(hn::SumOfLanes(kFloat, s0)), hn::GetLane(hn::SumOfLanes(kFloat, s1)),
          hn::GetLane(hn::SumOfLanes(kFloat, s2)), hn::GetLane(hn::SumOfLanes(kFloat, s3))};
      for (int64_t j = 0; j < std::min(kSideBySide, block.query_count - query); ++j) {
        for (int64_t k = i; k < width; ++k) sums[j] += (v[k] - q[j][k]) * (v[k] - q[j][k]);
        block.distances[(query + j) * block.stride + row] = sums[j];
      }
    }
  }
}

}  // namespace artel::transfer::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::transfer {

HWY_EXPORT(Distances);

void squared_distances(const DistanceBlock& block) { HWY_DYNAMIC_DISPATCH(Distances)(block); }

}  // namespace artel::transfer
#endif  // HWY_ONCE
