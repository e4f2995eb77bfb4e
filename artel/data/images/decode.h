// The two decoders behind decode_picture: internal to image.cc. Both throw Errors of kind corrupt.
#pragma once

#include "artel/data/images/image.h"

namespace artel::data {

// Throws if a picture with these sides is too large, or larger than its bytes can encode.
void check_size(const Bytes& bytes, int64_t height, int64_t width);

PictureSize jpeg_size(const Bytes& bytes);
Picture decode_jpeg(const Bytes& bytes, int channels, int64_t least_side);

PictureSize png_size(const Bytes& bytes);
Picture decode_png(const Bytes& bytes, int channels);

}  // namespace artel::data
