// Decoding of JPEG and PNG pictures, and encoding of PNG.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/data/images/augment.h"

namespace artel::data {

// Limit on the number of pixels, so that a small file cannot fill the memory.
inline constexpr int64_t kMaxPixels = int64_t{1} << 26;

// Rows of interleaved samples: [height, width, channels].
struct Picture {
  int64_t height = 0, width = 0, channels = 0;
  std::vector<uint8_t> samples;
};

bool is_jpeg(const Bytes& bytes);
bool is_png(const Bytes& bytes);

// Decodes a JPEG or PNG picture, recognised by content. `channels` is 1 (grey), 3 (colour), or 0
// (as in the file). Values are used as stored, ignoring gamma; 16-bit values keep their upper 8
// bits. Transparent parts are blended with white; grey is 0.299 red + 0.587 green + 0.114 blue.
// JPEG photographs are rotated according to their EXIF data. With `least_side`, a JPEG picture may
// be decoded at 1/2, 1/4, or 1/8 of its size if both sides stay at least that long, which is much
// faster; 0 means full size. Throws an Error of kind corrupt, also for a picture that can be
// decoded only in part.
Picture decode_picture(const Bytes& bytes, int channels = 0, int64_t least_side = 0);

// Converts a byte to a number in [0, 1].
inline float to_float(uint8_t sample) { return static_cast<float>(sample) * (1.0f / 255.0f); }

// Converts a picture to planes of numbers in [0, 1].
Image to_image(const Picture& picture);

// Prepares a picture for a network, in training and inference: decodes it with the channels of
// `shape`, [channels, height, width], scales it until it covers that size, and crops the centre.
Image read_picture(const Bytes& bytes, const Shape& shape);

// The bytes of a PNG file: grey (1 channel) or colour (3).
std::string encode_png(const Picture& picture);

struct PictureSize {
  int64_t height = 0, width = 0;
  bool operator==(const PictureSize&) const = default;
};

// Reads only the header.
PictureSize picture_size(const Bytes& bytes);

}  // namespace artel::data
