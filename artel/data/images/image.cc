#include "artel/data/images/image.h"

#include <algorithm>

#include "artel/data/images/decode.h"
#include "artel/data/images/resize.h"

namespace artel::data {
namespace {

// Neither format packs more pixels into a byte: deflate reaches 1032:1 on one-bit pixels.
constexpr int64_t kMaxPixelsOfByte = 1032 * 8;

bool is_png_not_jpeg(const Bytes& bytes) {
  require(is_jpeg(bytes) || is_png(bytes), ErrorKind::corrupt,
          "[{}] offset 0: neither a JPEG nor a PNG picture", bytes.name);
  return is_png(bytes);
}

}  // namespace

void check_size(const Bytes& bytes, int64_t height, int64_t width) {
  const auto possible = kMaxPixelsOfByte * static_cast<int64_t>(bytes.data.size());
  require(height > 0 && width > 0 && height <= kMaxSide && width <= kMaxSide &&
              height * width <= std::min(kMaxPixels, possible),
          ErrorKind::corrupt,
          "[{}] a picture of {} x {} pixels in {} bytes; at most {} are allowed", bytes.name, width,
          height, bytes.data.size(), kMaxPixels);
}

bool is_jpeg(const Bytes& bytes) { return bytes.text().starts_with("\xff\xd8\xff"); }

bool is_png(const Bytes& bytes) { return bytes.text().starts_with("\x89PNG\r\n\x1a\n"); }

Picture decode_picture(const Bytes& bytes, int channels, int64_t least_side) {
  require(channels == 0 || channels == 1 || channels == 3, ErrorKind::invalid_argument,
          "pictures have 1 or 3 channels, not {}", channels);
  return is_png_not_jpeg(bytes) ? decode_png(bytes, channels)
                                : decode_jpeg(bytes, channels, least_side);
}

PictureSize picture_size(const Bytes& bytes) {
  return is_png_not_jpeg(bytes) ? png_size(bytes) : jpeg_size(bytes);
}

Image to_image(const Picture& picture) {
  Image image(picture.channels, picture.height, picture.width);
  const int64_t plane = picture.height * picture.width;
  for (int64_t c = 0; c < picture.channels; ++c)
    for (int64_t i = 0; i < plane; ++i)
      image.pixels[c * plane + i] = to_float(picture.samples[i * picture.channels + c]);
  return image;
}

Image read_picture(const Bytes& bytes, const Shape& shape) {
  require(shape.rank() == 3, ErrorKind::shape, "[{}] got a picture for samples {}, expected images",
          bytes.name, to_string(shape));
  const Picture picture =
      decode_picture(bytes, static_cast<int>(shape[0]), std::max(shape[1], shape[2]));
  return covering(picture, shape[1], shape[2]);
}

}  // namespace artel::data
