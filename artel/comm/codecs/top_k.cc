// top-k: the largest values by magnitude, exactly ceil(share of n) of them, as bf16 (Aji and
// Heafield 2017). Among equal magnitudes, the first are taken.
//
// A message holds the values, the lower byte of each index, and for each block of 256 indices the
// number of its values in unary: that many ones, then a zero (Elias-Fano). That is 25 bits per
// value and one per block.
//
// The selection samples a threshold that is a little too low, collects the few candidates above it
// in one pass over memory, and selects among them exactly. The sample changes the time, never the
// result.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "artel/comm/codecs/top_k.cc"
#include "hwy/foreach_target.h"
//
#include "hwy/highway.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <vector>

#include "artel/base/error.h"
#include "artel/comm/codecs/makers.h"
#include "artel/comm/codecs/unaligned.h"

HWY_BEFORE_NAMESPACE();
namespace artel::comm::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Appends the indices of all values whose magnitude, as bits, is not below the threshold.
void collect(std::span<const float> values, uint32_t threshold, std::vector<uint32_t>& indices) {
  const hn::ScalableTag<float> floats;
  const hn::RebindToSigned<decltype(floats)> integers;
  const size_t lanes = hn::Lanes(floats);
  const auto limit = hn::Set(integers, static_cast<int32_t>(threshold));
  for (size_t i = 0; i < values.size(); i += lanes) {
    const size_t end = std::min(i + lanes, values.size());
    if (end == i + lanes) {
      const auto magnitudes = hn::BitCast(integers, hn::Abs(hn::LoadU(floats, &values[i])));
      if (hn::AllTrue(integers, hn::Lt(magnitudes, limit))) continue;
    }
    for (size_t index = i; index < end; ++index)
      if ((std::bit_cast<uint32_t>(values[index]) & 0x7fffffffu) >= threshold)
        indices.push_back(static_cast<uint32_t>(index));
  }
}

}  // namespace artel::comm::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace artel::comm {
namespace {

HWY_EXPORT(collect);

uint32_t magnitude_bits(float value) { return std::bit_cast<uint32_t>(value) & 0x7fffffffu; }

// A threshold that about `count` of the values reach, and almost surely not fewer.
uint32_t sampled_threshold(std::span<const float> values, size_t count) {
  constexpr size_t kSamples = 16'384;
  if (values.size() <= kSamples) return 0;
  std::vector<uint32_t> sample(kSamples);
  for (size_t i = 0; i < kSamples; ++i) {
    // Multiples of the golden ratio are evenly spread over any range and resonate with no row
    // length.
    const auto fraction = static_cast<uint32_t>(i * 0x9E3779B1u);
    sample[i] = magnitude_bits(values[uint64_t{fraction} * values.size() >> 32]);
  }
  const double expected =
      static_cast<double>(count) / static_cast<double>(values.size()) * kSamples;
  const auto position = static_cast<size_t>(expected + 4 * std::sqrt(expected) + 8);
  if (position >= kSamples) return 0;
  std::nth_element(sample.begin(), sample.begin() + position, sample.end(), std::greater<>());
  return sample[position];
}

// The indices of the `count` largest values, in ascending order.
std::vector<uint32_t> largest(std::span<const float> values, size_t count) {
  std::vector<uint32_t> indices;
  HWY_DYNAMIC_DISPATCH(collect)(values, sampled_threshold(values, count), indices);
  if (indices.size() < count) {
    indices.clear();
    HWY_DYNAMIC_DISPATCH(collect)(values, 0, indices);
  }
  // By magnitude, a NaN above all; then the first index. No two are equal.
  const auto order = [&](uint32_t index) {
    return uint64_t{magnitude_bits(values[index])} << 32 | uint32_t{~index};
  };
  std::vector<uint64_t> orders(indices.size());
  std::transform(indices.begin(), indices.end(), orders.begin(), order);
  std::nth_element(orders.begin(), orders.begin() + (count - 1), orders.end(), std::greater<>());
  std::erase_if(indices, [&](uint32_t index) { return order(index) < orders[count - 1]; });
  return indices;
}

class TopK final : public Codec {
 public:
  explicit TopK(double percent) : percent_(percent) {}

  std::string name() const override { return fmt::format("top-k {}%", percent_); }

  size_t encoded_bytes(size_t floats) const override {
    const size_t kept = count(floats);
    return kept * 3 + (kept + codec_blocks(floats) + 7) / 8;
  }

 private:
  size_t count(size_t floats) const {
    return std::min(floats,
                    static_cast<size_t>(std::ceil(static_cast<double>(floats) * percent_ / 100)));
  }

  void write(const CodecContext&, std::span<const float> values, std::byte* out) const override {
    require(values.size() < uint64_t{1} << 32, ErrorKind::unsupported,
            "[comm] top-k of {} floats: expected fewer than 2^32; try smaller buckets",
            values.size());
    const size_t kept = count(values.size());
    if (kept == 0) return;
    std::byte* const lower = out + kept * 2;
    std::byte* const unary = out + kept * 3;
    std::fill(unary, out + encoded_bytes(values.size()), std::byte{0});
    const std::vector<uint32_t> indices = largest(values, kept);
    for (size_t i = 0; i < kept; ++i) {
      store_at(out, i, finite_bf16_of(values[indices[i]]));
      lower[i] = static_cast<std::byte>(indices[i] % kCodecBlock);
      const size_t bit = i + indices[i] / kCodecBlock;  // the ones and zeros before it
      unary[bit / 8] |= std::byte{1} << bit % 8;
    }
  }

  void add_read(std::span<const std::byte> in, std::span<float> sum, float scale) const override {
    const size_t kept = count(sum.size());
    const size_t bits = kept + codec_blocks(sum.size());
    const std::byte* const lower = in.data() + kept * 2;
    const std::byte* const unary = in.data() + kept * 3;
    size_t done = 0;
    size_t first = 0;  // of the block
    for (size_t bit = 0; bit < bits; ++bit) {
      if ((unary[bit / 8] >> bit % 8 & std::byte{1}) == std::byte{0}) {
        first += kCodecBlock;
        continue;
      }
      const size_t index = first + (done < kept ? std::to_integer<size_t>(lower[done]) : 0);
      if (done == kept || index >= sum.size()) damaged(done);
      sum[index] += scale * float_of_bf16(load_at<uint16_t>(in.data(), done));
      ++done;
    }
    if (done < kept) damaged(done);
  }

  [[noreturn]] void damaged(size_t done) const {
    fail(ErrorKind::corrupt, "[comm] index {} of a message by {}: it is damaged", done, name());
  }

  double percent_;
};

}  // namespace

CodecDefinition top_k_codec() {
  return {.name = "top-k", .usual_argument = "1%", .make = [](std::string_view share) {
            require(share.ends_with('%'), ErrorKind::invalid_argument,
                    "[compress] 'top-k {0}': got '{0}', expected a percentage; try 'top-k 1%'",
                    share);
            share.remove_suffix(1);
            return std::make_unique<TopK>(codec_number("top-k", share, 1e-4, 100));
          }};
}

}  // namespace artel::comm
#endif
