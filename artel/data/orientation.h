// Which way up a photograph is: cameras store pixels as the sensor has them, and how they were held
// beside them.
#pragma once

#include <span>

#include "artel/data/image.h"

namespace artel::data {

// EXIF's numbers: how the stored picture is to be turned or mirrored.
inline constexpr int kUpright = 1;

// Of a block of EXIF data; kUpright if it does not say, or cannot be read.
int exif_orientation(std::span<const std::byte> exif);

// Whether rows of the stored picture are columns of the upright one.
bool swaps_sides(int orientation);

Picture turned_upright(Picture stored, int orientation);

}  // namespace artel::data
