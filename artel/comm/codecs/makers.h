// The codecs that come with Artel. To add one: its file, a declaration here, and a line in
// codec.cc.
#pragma once

#include <memory>

#include "artel/comm/codecs/codec.h"

namespace artel::comm {

// Codecs with a scale for each block of values, and all cuts between ranks, use this block.
inline constexpr size_t kCodecBlock = 256;

inline size_t codec_blocks(size_t floats) { return (floats + kCodecBlock - 1) / kCodecBlock; }

// The argument of a codec as a number. Throws for one outside of [low, high].
double codec_number(std::string_view codec, std::string_view argument, double low, double high);

CodecDefinition none_codec();
CodecDefinition fp16_codec();
CodecDefinition bf16_codec();
CodecDefinition int8_codec();
CodecDefinition sign_codec();
CodecDefinition top_k_codec();
CodecDefinition powersgd_codec();

}  // namespace artel::comm
