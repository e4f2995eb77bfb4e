#include "artel/data/idx.h"

#include <cstring>

#include "artel/base/compress.h"

namespace artel::data {
namespace {

constexpr int kMaxRank = 8;
constexpr int64_t kClasses = 10;

DType element_type(const ByteReader& reader, uint8_t code) {
  switch (code) {
    case 0x08:
      return DType::u8;
    case 0x09:
      return DType::i8;
    case 0x0b:
      return DType::i16;
    case 0x0c:
      return DType::i32;
    case 0x0d:
      return DType::f32;
    case 0x0e:
      return DType::f64;
  }
  reader.fail("idx element type {:#04x}, expected 0x08, 0x09 or 0x0b to 0x0e", code);
}

// The elements with their bytes in the order of this machine.
Tensor from_big_endian(std::span<const std::byte> bytes, Shape shape, DType type) {
  Tensor tensor(std::move(shape), type);
  const size_t size = size_of(type);
  for (size_t i = 0; i < bytes.size(); ++i)
    tensor.raw()[i / size * size + (size - 1 - i % size)] = bytes[i];
  return tensor;
}

std::filesystem::path plain_or_gzip(const std::filesystem::path& folder, const std::string& stem) {
  for (const char* suffix : {"", ".gz"}) {
    const auto path = folder / (stem + suffix);
    if (std::filesystem::exists(path)) return path;
  }
  fail(ErrorKind::not_found, "[{}] holds neither {} nor {}.gz", folder.string(), stem, stem);
}

DatasetPtr read_part(const std::filesystem::path& folder, const std::string& part,
                     const std::vector<std::string>& class_names) {
  const auto images_path = plain_or_gzip(folder, part + "-images-idx3-ubyte");
  const Tensor images = read_idx(images_path);
  const Tensor labels = read_idx(plain_or_gzip(folder, part + "-labels-idx1-ubyte"));
  const Shape& shape = images.shape();
  require(images.dtype() == DType::u8 && shape.rank() == 3, ErrorKind::corrupt,
          "[{}] holds {} of shape {}, expected u8 images", images_path.string(),
          to_string(images.dtype()), to_string(shape));
  return tensor_dataset(images.reshaped({shape[0], 1, shape[1], shape[2]}), labels, kClasses,
                        class_names);
}

}  // namespace

Tensor parse_idx(const Bytes& bytes) {
  ByteReader reader(bytes);
  reader.require(reader.big<uint16_t>() == 0, "an idx file starts with two zero bytes");
  const DType type = element_type(reader, reader.big<uint8_t>());
  const int rank = reader.big<uint8_t>();
  reader.require(rank >= 1 && rank <= kMaxRank, "an idx file of rank {}, expected 1 to {}", rank,
                 kMaxRank);
  std::vector<int64_t> extents;
  uint64_t left = bytes.data.size() / size_of(type);  // a bound on the elements, never overflows
  for (int axis = 0; axis < rank; ++axis) {
    extents.push_back(reader.big<uint32_t>());
    reader.require(static_cast<uint64_t>(extents.back()) <= left,
                   "extents [{}] need more than the {} bytes of the file; it may be truncated",
                   fmt::join(extents, ", "), bytes.data.size());
    if (extents.back() > 0) left /= static_cast<uint64_t>(extents.back());
  }
  Shape shape(std::move(extents));
  const uint64_t size = static_cast<uint64_t>(shape.elements()) * size_of(type);
  reader.require(reader.left() == size, "shape {} of {} needs {} bytes, but {} follow",
                 to_string(shape), to_string(type), size, reader.left());
  const Bytes elements = bytes.part(reader.offset(), size);
  if (size_of(type) == 1) return tensor_over(elements, std::move(shape), type);
  return from_big_endian(elements.data, std::move(shape), type);
}

Tensor read_idx(const std::filesystem::path& path) { return parse_idx(map_or_gunzip(path)); }

Split idx_images(const std::filesystem::path& folder, std::vector<std::string> class_names) {
  return {read_part(folder, "train", class_names), read_part(folder, "t10k", class_names)};
}

}  // namespace artel::data
