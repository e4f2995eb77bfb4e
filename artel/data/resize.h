// Scaling and cropping of images.
#pragma once

#include "artel/data/augment.h"
#include "artel/data/image.h"

namespace artel::data {

// The largest width and height of an image.
inline constexpr int64_t kMaxSide = 1 << 15;

// Bilinear with a filter that widens when the image shrinks, so that every source pixel counts
// (what imaging libraries call antialiased). Cost: height * width * (2 + 2 * shrink factor)
// multiplications for each channel and direction.
Image resized(const Image& image, int64_t height, int64_t width);

// The part of an image that starts at (top, left), zero where it reaches over the border.
Image window(const Image& image, int64_t top, int64_t left, int64_t height, int64_t width);

// Scales an image, keeping its proportions, until it covers this size, and cuts the middle.
Image covering(const Image& image, int64_t height, int64_t width);
// The same for a decoded picture; the result is in [0, 1].
Image covering(const Picture& picture, int64_t height, int64_t width);

}  // namespace artel::data
