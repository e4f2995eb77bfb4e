#include "artel/data/images/orientation.h"

#include <libexif/exif-data.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace artel::data {

int exif_orientation(std::span<const std::byte> exif) {
  const std::unique_ptr<ExifData, decltype(&exif_data_unref)> data(exif_data_new(),
                                                                   exif_data_unref);
  if (!data) return kUpright;
  exif_data_load_data(data.get(), reinterpret_cast<const unsigned char*>(exif.data()),
                      static_cast<unsigned>(exif.size()));
  const ExifEntry* const entry =
      exif_content_get_entry(data->ifd[EXIF_IFD_0], EXIF_TAG_ORIENTATION);
  if (!entry || entry->format != EXIF_FORMAT_SHORT || entry->size < sizeof(ExifShort))
    return kUpright;
  const int orientation = exif_get_short(entry->data, exif_data_get_byte_order(data.get()));
  return orientation >= 1 && orientation <= 8 ? orientation : kUpright;
}

bool swaps_sides(int orientation) { return orientation >= 5; }

Picture turned_upright(Picture stored, int orientation) {
  if (orientation == kUpright) return stored;
  const bool swapped = swaps_sides(orientation);
  const bool from_right =
      orientation == 2 || orientation == 3 || orientation == 7 || orientation == 8;
  const bool from_bottom =
      orientation == 3 || orientation == 4 || orientation == 6 || orientation == 7;
  Picture upright = {.height = swapped ? stored.width : stored.height,
                     .width = swapped ? stored.height : stored.width,
                     .channels = stored.channels,
                     .samples = std::vector<uint8_t>(stored.samples.size())};
  auto to = upright.samples.begin();
  for (int64_t y = 0; y < upright.height; ++y)
    for (int64_t x = 0; x < upright.width; ++x) {
      auto [row, column] = swapped ? std::pair(x, y) : std::pair(y, x);
      if (from_bottom) row = stored.height - 1 - row;
      if (from_right) column = stored.width - 1 - column;
      const auto from = stored.samples.begin() + (row * stored.width + column) * stored.channels;
      to = std::copy(from, from + stored.channels, to);
    }
  return upright;
}

}  // namespace artel::data
