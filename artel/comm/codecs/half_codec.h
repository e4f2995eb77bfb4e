// What fp16 and bf16 share: two bytes for each value, each on its own.
#pragma once

#include "artel/comm/codecs/codec.h"

namespace artel::comm {

// Format has a kName, narrow(values, count, out) and add_wide(in, count, scale, sum).
template <typename Format>
class HalfCodec final : public Codec {
 public:
  std::string name() const override { return Format::kName; }
  size_t encoded_bytes(size_t floats) const override { return floats * sizeof(uint16_t); }

 private:
  void write(const CodecContext&, std::span<const float> values, std::byte* out) const override {
    Format::narrow(values.data(), values.size(), out);
  }
  void add_read(std::span<const std::byte> in, std::span<float> sum, float scale) const override {
    Format::add_wide(in.data(), sum.size(), scale, sum.data());
  }
};

}  // namespace artel::comm
