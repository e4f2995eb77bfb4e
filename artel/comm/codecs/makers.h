// One factory per codec; make_codec chooses among them.
#pragma once

#include <memory>

#include "artel/comm/codecs/codec.h"

namespace artel::comm {

// Codecs with a scale for each block of values, and all cuts between ranks, use this block.
inline constexpr size_t kCodecBlock = 256;

inline size_t codec_blocks(size_t floats) { return (floats + kCodecBlock - 1) / kCodecBlock; }

std::unique_ptr<Codec> make_none();
std::unique_ptr<Codec> make_fp16();
std::unique_ptr<Codec> make_bf16();
std::unique_ptr<Codec> make_int8();
std::unique_ptr<Codec> make_sign();
std::unique_ptr<Codec> make_top_k(double percent);
std::unique_ptr<Codec> make_powersgd(int rank);

}  // namespace artel::comm
