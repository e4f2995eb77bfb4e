// What int8 and sign share: blocks of kCodecBlock values, each with a scale of its own.
//
// A message is the scales of all blocks, then their codes. The last block is padded with zeros
// while it is worked on; only the codes of real values are sent.
#pragma once

#include <algorithm>

#include "artel/comm/codecs/codec.h"
#include "artel/comm/codecs/makers.h"
#include "artel/comm/codecs/unaligned.h"

namespace artel::comm {

// Format has a kName, kBlockBytes (of the codes of a whole block), bytes(count) of the codes of a
// block with so many values, and
//   float encode(key, block, values, count, codes): one block, of which `count` values are real;
//     returns its scale
//   void add(codes, scale, sum): one block
template <typename Format>
class BlockCodec final : public Codec {
 public:
  std::string name() const override { return Format::kName; }

  size_t encoded_bytes(size_t floats) const override {
    const size_t whole = floats / kCodecBlock;
    return codec_blocks(floats) * sizeof(float) + whole * Format::kBlockBytes +
           Format::bytes(floats % kCodecBlock);
  }

 private:
  void write(const CodecContext& context, std::span<const float> values,
             std::byte* out) const override {
    const uint64_t key = context.key();
    const size_t whole = values.size() / kCodecBlock;
    std::byte* codes = out + codec_blocks(values.size()) * sizeof(float);
    for (size_t block = 0; block < whole; ++block, codes += Format::kBlockBytes)
      store_at(out, block,
               Format::encode(key, block, &values[block * kCodecBlock], kCodecBlock, codes));
    const std::span<const float> rest = values.subspan(whole * kCodecBlock);
    if (rest.empty()) return;
    float padded[kCodecBlock] = {};
    std::byte padded_codes[Format::kBlockBytes];
    std::copy(rest.begin(), rest.end(), padded);
    store_at(out, whole, Format::encode(key, whole, padded, rest.size(), padded_codes));
    std::copy_n(padded_codes, Format::bytes(rest.size()), codes);
  }

  void add_read(std::span<const std::byte> in, std::span<float> sum, float scale) const override {
    const size_t whole = sum.size() / kCodecBlock;
    const std::byte* codes = in.data() + codec_blocks(sum.size()) * sizeof(float);
    for (size_t block = 0; block < whole; ++block, codes += Format::kBlockBytes)
      Format::add(codes, scale * load_at<float>(in.data(), block), &sum[block * kCodecBlock]);
    const std::span<float> rest = sum.subspan(whole * kCodecBlock);
    if (rest.empty()) return;
    float padded[kCodecBlock] = {};
    std::byte padded_codes[Format::kBlockBytes] = {};
    std::copy(rest.begin(), rest.end(), padded);
    std::copy_n(codes, Format::bytes(rest.size()), padded_codes);
    Format::add(padded_codes, scale * load_at<float>(in.data(), whole), padded);
    std::copy_n(padded, rest.size(), rest.begin());
  }
};

}  // namespace artel::comm
