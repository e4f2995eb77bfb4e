// Scaling and cropping of images.
#pragma once

#include "artel/data/images/augment.h"
#include "artel/data/images/image.h"

namespace artel::data {

// The largest width and height of an image.
inline constexpr int64_t kMaxSide = 1 << 15;

// Bilinear scaling with antialiasing: the filter widens when the image shrinks, so that every
// source pixel contributes. Costs height * width * (2 + 2 * shrink factor) multiplications per
// channel and direction.
Image resized(const Image& image, int64_t height, int64_t width);

// The part of an image that starts at (top, left), zero beyond the border.
Image window(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width);

// Scales an image, keeping its proportions, until it covers this size, and crops the centre.
Image covering(const Image& image, int64_t height, int64_t width);
// Like the above for a decoded picture. The result is in [0, 1].
Image covering(const Picture& picture, int64_t height, int64_t width);

}  // namespace artel::data
