#include "artel/comm/codecs/error_feedback.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "artel/comm/codecs/codec.h"

namespace artel::comm {

void add_to_residual(std::span<const float> values, std::span<float> residual) {
  constexpr float kLargest = std::numeric_limits<float>::max();
  for (size_t i = 0; i < values.size(); ++i) {
    const float sum = values[i] + (std::fabs(residual[i]) <= kLargest ? residual[i] : 0.0f);
    const float bounded = std::min(std::max(sum, -kLargest), kLargest);
    residual[i] = std::fabs(values[i]) <= kLargest ? bounded : sum;
  }
}

void compress(const Codec& codec, const CodecContext& context, std::span<const float> values,
              std::span<float> residual, std::span<std::byte> out) {
  add_to_residual(values, residual);
  codec.encode(context, residual, out);
  codec.decode_add(out, residual, -1);
}

}  // namespace artel::comm
