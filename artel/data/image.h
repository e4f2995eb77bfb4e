// JPEG and PNG pictures, decoded to bytes; PNG pictures also from them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/data/augment.h"

namespace artel::data {

// The most pixels a picture may have: a small file must not be able to fill the memory.
inline constexpr int64_t kMaxPixels = int64_t{1} << 26;

// Rows of interleaved samples: [height, width, channels].
struct Picture {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> samples;
};

bool is_jpeg(const Bytes& bytes);
bool is_png(const Bytes& bytes);

// Decodes a JPEG or PNG picture, recognised by content. `channels` is 1 (grey), 3 (colour) or 0 (as
// the file has it). Values are taken as stored, ignoring gamma; of 16 bits the upper 8 are used.
// Transparent parts are blended with white, using stored values; grey is 0.299 red + 0.587 green +
// 0.114 blue. A JPEG picture may be decoded at 1/2, 1/4 or 1/8 of its size where that leaves both
// sides at `least_side` or more, which is much faster; 0 means full size. Throws an Error of kind
// corrupt, also for a picture that can be decoded only in part. A JPEG photograph is turned upright
// as its EXIF data says.
Picture decode_picture(const Bytes& bytes, int channels = 0, int64_t least_side = 0);

// A sample as a number in [0, 1].
inline float to_float(uint8_t sample) { return static_cast<float>(sample) * (1.0f / 255.0f); }

// As planes of such numbers.
Image to_image(const Picture& picture);

// How a network sees a picture, in training and afterwards: decoded with the channels of `shape`,
// [channels, height, width], scaled until it covers that size, and cut in the middle.
Image read_picture(const Bytes& bytes, const Shape& shape);

// The bytes of a PNG file: grey (1 channel) or colour (3).
std::string encode_png(const Picture& picture);

struct PictureSize {
  int64_t height = 0, width = 0;
  bool operator==(const PictureSize&) const = default;
};

// From the header alone.
PictureSize picture_size(const Bytes& bytes);

}  // namespace artel::data
