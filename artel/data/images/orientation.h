// EXIF orientation of photographs. Cameras store pixels in sensor order and record how the camera
// was held.
#pragma once

#include <span>

#include "artel/data/images/image.h"

namespace artel::data {

// EXIF orientation numbers, which encode a rotation and a reflection.
inline constexpr int kUpright = 1;

// The orientation in a block of EXIF data; kUpright if it is missing or unreadable.
int exif_orientation(std::span<const std::byte> exif);

// True if rows of the stored picture are columns of the upright one.
bool swaps_sides(int orientation);

Picture turned_upright(Picture stored, int orientation);

}  // namespace artel::data
