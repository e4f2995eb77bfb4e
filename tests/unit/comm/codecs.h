// Inputs for the tests of codecs.
#pragma once

#include <vector>

#include "artel/base/random.h"
#include "artel/comm/codecs/codec.h"

namespace artel::comm {

// Values like gradients: normal, each block of 100 with its own scale.
inline std::vector<float> gradients(uint64_t seed, size_t count) {
  Random random{seed};
  std::vector<float> values(count);
  float scale = 1;
  for (size_t i = 0; i < count; ++i) {
    if (i % 100 == 0) scale = random.uniform(0.01f, 1);
    values[i] = scale * random.normal();
  }
  return values;
}

inline std::vector<std::byte> encoded(const Codec& codec, const std::vector<float>& values,
                                      const CodecContext& context = {}) {
  std::vector<std::byte> out(codec.encoded_bytes(values.size()));
  codec.encode(context, values, out);
  return out;
}

inline std::vector<float> round_trip(const Codec& codec, const std::vector<float>& values,
                                     const CodecContext& context = {}) {
  std::vector<float> decoded(values.size(), 0.0f);
  codec.decode_add(encoded(codec, values, context), decoded);
  return decoded;
}

// |a - b| / |b|
inline double distance(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0, square = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    difference += (double{a[i]} - b[i]) * (double{a[i]} - b[i]);
    square += double{b[i]} * b[i];
  }
  return square == 0 ? std::sqrt(difference) : std::sqrt(difference / square);
}

}  // namespace artel::comm
