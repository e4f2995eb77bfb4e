#include "artel/data/planes.h"

#include <cstring>

namespace artel::data {

Tensor channels_first(const Tensor& images) {
  const Shape& shape = images.shape();
  require(shape.rank() == 4, ErrorKind::shape,
          "got an array {}, expected images [n, height, width, channels]", to_string(shape));
  const int64_t channels = shape[3], plane = shape[1] * shape[2];
  const size_t size = size_of(images.dtype());
  Tensor planes({shape[0], channels, shape[1], shape[2]}, images.dtype());
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < plane; ++p)
        std::memcpy(planes.raw() + static_cast<size_t>((i * channels + c) * plane + p) * size,
                    images.raw() + static_cast<size_t>((i * plane + p) * channels + c) * size,
                    size);
  return planes;
}

}  // namespace artel::data
