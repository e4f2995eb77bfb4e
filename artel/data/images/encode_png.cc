#include <png.h>

#include "artel/base/error.h"
#include "artel/data/images/image.h"

namespace artel::data {

std::string encode_png(const Picture& picture) {
  require(picture.channels == 1 || picture.channels == 3, ErrorKind::invalid_argument,
          "[PNG] got a picture of {} channels, expected 1 or 3", picture.channels);
  png_image image = {};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(picture.width);
  image.height = static_cast<png_uint_32>(picture.height);
  image.format = picture.channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  const bool good = png_image_write_to_memory(&image, bytes.data(), &size, 0,
                                              picture.samples.data(), 0, nullptr) != 0;
  png_image_free(&image);
  require(good, ErrorKind::invalid_argument, "[PNG] a picture of {} x {} cannot be written: {}",
          picture.width, picture.height, image.message);
  bytes.resize(size);
  return bytes;
}

}  // namespace artel::data
