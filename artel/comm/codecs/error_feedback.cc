#include "artel/comm/codecs/error_feedback.h"

#include <cmath>
#include <limits>

#include "artel/comm/codecs/codec.h"

namespace artel::comm {

void add_to_residual(std::span<const float> values, std::span<float> residual) {
  for (size_t i = 0; i < values.size(); ++i) {
    const bool finite = std::fabs(residual[i]) <= std::numeric_limits<float>::max();
    residual[i] = values[i] + (finite ? residual[i] : 0.0f);
  }
}

void compress(const Codec& codec, const CodecContext& context, std::span<const float> values,
              std::span<float> residual, std::span<std::byte> out) {
  add_to_residual(values, residual);
  codec.encode(context, residual, out);
  codec.decode_add(out, residual, -1);
}

}  // namespace artel::comm
