// How the values of a message are packed: all of them or those selected by a mask, as floats or
// encoded by one of the codecs of the synchronous strategies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "artel/comm/codecs/codec.h"

namespace artel::ps {

// The bytes of `values`, of which only those with a non-zero `keep` are sent; an empty `keep` sends
// all without a mask. `codec` may be null. `lost`, if not empty, receives what the encoding changed
// in the values sent: original minus decoded.
std::vector<std::byte> pack_values(std::span<const float> values, std::span<const uint8_t> keep,
                                   const comm::Codec* codec, const comm::CodecContext& context,
                                   std::span<float> lost = {});

// The inverse: all `count` values, 0 for those that were not sent. Throws an Error of kind corrupt
// if the bytes are not a valid packing of `count` values. `present`, if given, receives the mask.
std::vector<float> unpack_values(std::span<const std::byte> bytes, size_t count, bool masked,
                                 const comm::Codec* codec, std::vector<uint8_t>* present = nullptr);

}  // namespace artel::ps
