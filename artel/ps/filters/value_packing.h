// Packs the values of a message: all values or those selected by a mask, as floats or encoded by a
// codec.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "artel/comm/codecs/codec.h"

namespace artel::ps {

// Packs the values with nonzero `keep`; an empty `keep` packs all without a mask. `codec` may be
// null. `lost`, if not empty, receives the encoding error of the packed values: original minus
// decoded.
std::vector<std::byte> pack_values(std::span<const float> values, std::span<const uint8_t> keep,
                                   const comm::Codec* codec, const comm::CodecContext& context,
                                   std::span<float> lost = {});

// The inverse of pack_values: all `count` values, 0 for those not sent. Throws an Error of kind
// corrupt if the bytes are not a valid packing of `count` values. `present`, if given, receives the
// mask.
std::vector<float> unpack_values(std::span<const std::byte> bytes, size_t count, bool masked,
                                 const comm::Codec* codec, std::vector<uint8_t>* present = nullptr);

}  // namespace artel::ps
