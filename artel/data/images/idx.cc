#include "artel/data/images/idx.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>

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

bool has_any(const std::string& name, const std::vector<std::string>& words) {
  return std::any_of(words.begin(), words.end(),
                     [&](const std::string& word) { return name.find(word) != name.npos; });
}

// The file whose name contains a word of each list; empty if there is none.
std::filesystem::path find_file(const std::filesystem::path& folder,
                                const std::vector<std::string>& part,
                                const std::vector<std::string>& content) {
  std::filesystem::path found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with('.') || !has_any(name, part) || !has_any(name, content)) continue;
    require(found.empty(), ErrorKind::invalid_argument,
            "[{}] holds both {} and {}, expected one file with '{}' and '{}' in its name",
            folder.string(), std::min(found.filename().string(), name),
            std::max(found.filename().string(), name), part.front(), content.front());
    found = entry.path();
  }
  return found;
}

struct IdxPart {
  Tensor inputs, labels;
};

// Empty if the part is missing.
std::optional<IdxPart> find_part(const std::filesystem::path& folder,
                                 const std::vector<std::string>& part) {
  const auto inputs = find_file(folder, part, {"images", "data", "inputs"});
  const auto labels = find_file(folder, part, {"labels", "targets"});
  if (inputs.empty() && labels.empty()) return {};
  require(!inputs.empty() && !labels.empty(), ErrorKind::not_found,
          "[{}] holds no file with '{}' and '{}' in its name, expected one beside {}",
          folder.string(), part.front(), inputs.empty() ? "images" : "labels",
          (inputs.empty() ? labels : inputs).filename().string());
  IdxPart result = {read_idx(inputs), read_idx(labels)};
  const Shape& shape = result.inputs.shape();
  if (result.inputs.dtype() == DType::u8 && shape.rank() == 3)
    result.inputs = result.inputs.reshaped({shape[0], 1, shape[1], shape[2]});
  return result;
}

int64_t count_labels(const Tensor& labels) {
  if (is_floating(labels.dtype()) || labels.elements() == 0) return 0;
  const Tensor numbers = labels.to(DType::i32);
  const auto values = numbers.values<int32_t>();
  return int64_t{*std::max_element(values.begin(), values.end())} + 1;
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

bool is_idx(const Bytes& bytes) {
  if (bytes.data.size() < 8) return false;
  const auto at = [&](size_t i) { return std::to_integer<int>(bytes.data[i]); };
  return at(0) == 0 && at(1) == 0 && at(2) >= 0x08 && at(2) <= 0x0e && at(3) >= 1 &&
         at(3) <= kMaxRank;
}

Tensor read_idx(const std::filesystem::path& path) { return parse_idx(map_or_gunzip(path)); }

Split idx_images(const std::filesystem::path& folder, std::vector<std::string> class_names) {
  return {read_part(folder, "train", class_names), read_part(folder, "t10k", class_names)};
}

Split idx(const std::filesystem::path& folder, double test_fraction, uint64_t seed) {
  require(std::filesystem::is_directory(folder), ErrorKind::not_found,
          "[{}] is not a folder, expected one with idx files, such as train-images-idx3-ubyte",
          folder.string());
  const std::optional<IdxPart> train = find_part(folder, {"train"});
  require(train.has_value(), ErrorKind::not_found,
          "[{}] holds no idx files of a training part, such as train-images-idx3-ubyte and "
          "train-labels-idx1-ubyte",
          folder.string());
  const std::optional<IdxPart> test = find_part(folder, {"test", "t10k"});
  const int64_t classes =
      std::max(count_labels(train->labels), test ? count_labels(test->labels) : 0);
  const DatasetPtr all = tensor_dataset(train->inputs, train->labels, classes);
  if (!test) return split(all, test_fraction, seed);
  return {all, tensor_dataset(test->inputs, test->labels, classes)};
}

}  // namespace artel::data
