// Base of fp16, bf16, int8, and sign: blocks of kCodecBlock values, in some codecs with a scale per
// block.
//
// A message consists of the scales of all blocks, if the codec has scales, then their codes. The
// last block is padded with zeros for processing; only the codes of real values are sent.
#pragma once

#include <algorithm>

#include "artel/comm/codecs/codec.h"
#include "artel/comm/codecs/makers.h"
#include "artel/comm/codecs/unaligned.h"

namespace artel::comm {

// A Format has kName, kScaled, kBlockBytes (size of the codes of a full block), bytes(count) (size
// of the codes of a block with `count` values), and these functions:
//   float encode(key, block, values, count, codes)   encodes a block with `count` valid values;
//                                                    returns its scale, if the format has one
//   void add(codes, scale, sum)                      adds a decoded block to `sum`
template <typename Format>
class BlockCodec final : public Codec {
 public:
  std::string name() const override { return Format::kName; }

  size_t encoded_bytes(size_t floats) const override {
    return scale_bytes(floats) + floats / kCodecBlock * Format::kBlockBytes +
           Format::bytes(floats % kCodecBlock);
  }

 private:
  static size_t scale_bytes(size_t floats) {
    return Format::kScaled ? codec_blocks(floats) * sizeof(float) : 0;
  }

  static float scale_of(std::span<const std::byte> in, size_t block) {
    return Format::kScaled ? load_at<float>(in.data(), block) : 1.0f;
  }

  void write(const CodecContext& context, std::span<const float> values,
             std::byte* out) const override {
    const uint64_t key = context.key();
    std::byte* const codes = out + scale_bytes(values.size());
    for (size_t block = 0; block < codec_blocks(values.size()); ++block) {
      const size_t begin = block * kCodecBlock;
      const size_t count = std::min(kCodecBlock, values.size() - begin);
      std::byte* const target = codes + block * Format::kBlockBytes;
      float scale;
      if (count == kCodecBlock) {
        scale = Format::encode(key, block, &values[begin], count, target);
      } else {
        float padded[kCodecBlock] = {};
        std::byte padded_codes[Format::kBlockBytes];
        std::copy_n(&values[begin], count, padded);
        scale = Format::encode(key, block, padded, count, padded_codes);
        std::copy_n(padded_codes, Format::bytes(count), target);
      }
      if constexpr (Format::kScaled) store_at(out, block, scale);
    }
  }

  void add_read(std::span<const std::byte> in, std::span<float> sum, float scale) const override {
    const std::byte* const codes = in.data() + scale_bytes(sum.size());
    for (size_t block = 0; block < codec_blocks(sum.size()); ++block) {
      const size_t begin = block * kCodecBlock;
      const size_t count = std::min(kCodecBlock, sum.size() - begin);
      const std::byte* const source = codes + block * Format::kBlockBytes;
      if (count == kCodecBlock) {
        Format::add(source, scale * scale_of(in, block), &sum[begin]);
      } else {
        float padded[kCodecBlock] = {};
        std::byte padded_codes[Format::kBlockBytes] = {};
        std::copy_n(&sum[begin], count, padded);
        std::copy_n(source, Format::bytes(count), padded_codes);
        Format::add(padded_codes, scale * scale_of(in, block), padded);
        std::copy_n(padded, count, &sum[begin]);
      }
    }
  }
};

// A format that stores each value separately in two bytes; Kernels has narrow(values, codes) and
// add(codes, scale, sum), both for a whole block.
template <typename Kernels>
struct HalfFormat : Kernels {
  static constexpr bool kScaled = false;
  static constexpr size_t kBlockBytes = kCodecBlock * 2;
  static size_t bytes(size_t count) { return count * 2; }
  static float encode(uint64_t, size_t, const float* values, size_t, std::byte* codes) {
    Kernels::narrow(values, codes);
    return 1;
  }
};

}  // namespace artel::comm
