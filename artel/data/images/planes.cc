#include "artel/data/images/planes.h"

namespace artel::data {
namespace {

// T stands for any type of its size.
template <typename T>
void transpose(const Tensor& images, Tensor& planes) {
  const Shape& shape = images.shape();
  const int64_t channels = shape[3], plane = shape[1] * shape[2];
  const T* from = reinterpret_cast<const T*>(images.raw());
  T* to = reinterpret_cast<T*>(planes.raw());
  for (int64_t i = 0; i < shape[0]; ++i)
    for (int64_t c = 0; c < channels; ++c)
      for (int64_t p = 0; p < plane; ++p)
        to[(i * channels + c) * plane + p] = from[(i * plane + p) * channels + c];
}

}  // namespace

Tensor channels_first(const Tensor& images) {
  const Shape& shape = images.shape();
  require(shape.rank() == 4, ErrorKind::shape,
          "got an array {}, expected images [n, height, width, channels]", to_string(shape));
  Tensor planes({shape[0], shape[3], shape[1], shape[2]}, images.dtype());
  switch (size_of(images.dtype())) {
    case 1:
      transpose<uint8_t>(images, planes);
      break;
    case 2:
      transpose<uint16_t>(images, planes);
      break;
    case 4:
      transpose<uint32_t>(images, planes);
      break;
    default:
      transpose<uint64_t>(images, planes);
  }
  return planes;
}

}  // namespace artel::data
