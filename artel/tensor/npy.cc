#include "artel/tensor/npy.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/base/zip.h"
#include "artel/tensor/from_bytes.h"

namespace artel {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
constexpr size_t kMaxHeader = 1 << 16;
constexpr size_t kHeaderAlignment = 64;

// NumPy's type code without the byte order.
constexpr std::array<std::pair<std::string_view, DType>, 9> kNpyTypes = {{{"f4", DType::f32},
                                                                          {"f8", DType::f64},
                                                                          {"f2", DType::f16},
                                                                          {"i1", DType::i8},
                                                                          {"u1", DType::u8},
                                                                          {"i2", DType::i16},
                                                                          {"i4", DType::i32},
                                                                          {"i8", DType::i64},
                                                                          {"b1", DType::boolean}}};

struct Header {
  DType type = DType::f32;
  bool big_endian = false;
  bool fortran_order = false;
  Shape shape;
};

// The text of the value of `key` in a Python dictionary in NumPy's format.
std::string_view value_of(const ByteReader& reader, std::string_view dictionary,
                          const std::string& key) {
  const size_t at = dictionary.find("'" + key + "':");
  reader.require(at != std::string_view::npos, "the header has no '{}'", key);
  return trim(dictionary.substr(at + key.size() + 3));
}

Shape parse_shape(const ByteReader& reader, std::string_view text) {
  const size_t end = text.find(')');
  reader.require(!text.empty() && text[0] == '(' && end != std::string_view::npos,
                 "the shape is not a tuple");
  std::vector<int64_t> extents;
  for (const std::string& part : split(text.substr(1, end - 1), ',')) {
    const std::string_view digits = trim(part);
    if (digits.empty()) continue;
    int64_t extent = -1;
    const auto [stop, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), extent);
    reader.require(error == std::errc() && stop == digits.data() + digits.size() && extent >= 0,
                   "the extent '{}' of the shape is not a whole number", digits);
    extents.push_back(extent);
  }
  reader.require(extents.size() <= 32, "an array of rank {}", extents.size());
  return Shape(std::move(extents));
}

Header parse_header(const ByteReader& reader, std::string_view text) {
  Header header;
  const std::string_view type = value_of(reader, text, "descr");
  reader.require(type.size() >= 5 && type[0] == '\'' && type.substr(2).find('\'') <= 8,
                 "the element type is not a plain one");
  const std::string_view code = type.substr(2, type.substr(2).find('\''));
  const auto known = std::find_if(kNpyTypes.begin(), kNpyTypes.end(),
                                  [&](auto& entry) { return entry.first == code; });
  require(known != kNpyTypes.end(), ErrorKind::unsupported,
          "[{}] holds elements of NumPy type '{}{}', which Artel does not read; convert it first",
          reader.name(), type[1], code);
  header.type = known->second;
  header.big_endian = type[1] == '>';
  header.fortran_order = value_of(reader, text, "fortran_order").substr(0, 4) == "True";
  header.shape = parse_shape(reader, value_of(reader, text, "shape"));
  return header;
}

// Parses the header and leaves the reader at the first element.
Header read_header(ByteReader& reader) {
  reader.require(reader.take_text(kMagic.size()) == kMagic, "not an NPY file");
  const int version = reader.little<uint8_t>();
  reader.take(1);
  reader.require(version >= 1 && version <= 3, "NPY version {}, expected 1 to 3", version);
  const uint32_t size = version == 1 ? reader.little<uint16_t>() : reader.little<uint32_t>();
  reader.require(size <= kMaxHeader, "a header of {} bytes; at most {} are allowed", size,
                 kMaxHeader);
  return parse_header(reader, reader.take_text(size));
}

// Checks the header of an entry before inflating it.
void check_size(const ZipArchive& archive, const ZipArchive::Entry& entry) {
  const Bytes start = archive.read_start(entry, 2 * kMaxHeader);  // includes the magic bytes
  require(is_npy(start), ErrorKind::corrupt, "[{}] is not an NPY file", start.name);
  ByteReader reader(start);
  const Header header = read_header(reader);
  const auto expected =
      static_cast<double>(header.shape.elements()) * static_cast<double>(size_of(header.type)) +
      static_cast<double>(reader.offset());
  require(expected == static_cast<double>(entry.size), ErrorKind::corrupt,
          "[{}] has {} bytes, expected {:.0f} for {}", start.name, entry.size, expected,
          to_string(header.shape));
}

std::vector<int64_t> column_major_strides(const Shape& shape) {
  std::vector<int64_t> strides;
  int64_t stride = 1;
  for (const int64_t extent : shape.extents()) {
    strides.push_back(stride);
    stride *= extent;
  }
  return strides;
}

void swap_bytes(Tensor& tensor) {
  const size_t size = size_of(tensor.dtype());
  for (size_t i = 0; i < tensor.bytes(); i += size)
    std::reverse(tensor.raw() + i, tensor.raw() + i + size);
}

Tensor in_numpy_type(const Tensor& tensor) {
  return tensor.dtype() == DType::bf16 ? tensor.to(DType::f32) : tensor;
}

std::span<const std::byte> bytes_of(const Tensor& tensor) { return {tensor.raw(), tensor.bytes()}; }

}  // namespace

bool is_npy(const Bytes& bytes) { return bytes.text().substr(0, kMagic.size()) == kMagic; }

Tensor parse_npy(const Bytes& bytes) {
  ByteReader reader(bytes);
  const Header header = read_header(reader);
  const Bytes elements = bytes.part(reader.offset(), reader.left());
  Tensor tensor = tensor_over(elements, header.shape, header.type);
  if (header.fortran_order && tensor.elements() > 0)
    tensor =
        strided_tensor(elements, header.shape, header.type, 0, column_major_strides(header.shape));
  if (header.big_endian && size_of(header.type) > 1) {
    tensor = tensor.clone();
    swap_bytes(tensor);
  }
  return tensor;
}

NamedTensors parse_npz(const Bytes& bytes) {
  const ZipArchive archive(bytes);
  NamedTensors tensors;
  for (const ZipArchive::Entry& entry : archive.entries()) {
    check_size(archive, entry);
    const Bytes content = archive.read(entry);
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    tensors.push_back({std::move(name), parse_npy(content)});
  }
  return tensors;
}

Tensor read_npy(const std::filesystem::path& path) { return parse_npy(map_file(path)); }

NamedTensors read_npz(const std::filesystem::path& path) { return parse_npz(map_file(path)); }

std::string npy_header(DType dtype, const Shape& shape) {
  const auto type = std::find_if(kNpyTypes.begin(), kNpyTypes.end(),
                                 [&](auto& entry) { return entry.second == dtype; });
  require(type != kNpyTypes.end(), ErrorKind::unsupported, "NumPy has no type {}",
          to_string(dtype));
  std::string extents = fmt::format("{}", fmt::join(shape.extents(), ", "));
  if (shape.rank() == 1) extents += ",";
  std::string text = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}), }}",
                                 size_of(dtype) == 1 ? '|' : '<', type->first, extents);
  const size_t unpadded = kMagic.size() + 4 + text.size() + 1;
  text.append((kHeaderAlignment - unpadded % kHeaderAlignment) % kHeaderAlignment, ' ');
  text += '\n';
  std::string header(kMagic);
  header += {1, 0, static_cast<char>(text.size() & 0xff), static_cast<char>(text.size() >> 8)};
  return header + text;
}

void write_npy(const std::filesystem::path& path, const Tensor& tensor) {
  const Tensor written = in_numpy_type(tensor);
  const std::string header = npy_header(written.dtype(), written.shape());
  const std::array parts = {std::as_bytes(std::span(header)), bytes_of(written)};
  write_file_atomically(path, parts);
}

void write_npz(const std::filesystem::path& path, const NamedTensors& tensors) {
  std::vector<std::string> headers;
  std::vector<Tensor> written;
  headers.reserve(tensors.size());
  std::vector<ZipPart> parts;
  std::set<std::string> names;
  for (const NamedTensor& entry : tensors) {
    require(names.insert(entry.name).second, ErrorKind::invalid_argument,
            "[{}] the tensor name '{}' is used twice", path.string(), entry.name);
    written.push_back(in_numpy_type(entry.tensor));
    headers.push_back(npy_header(written.back().dtype(), written.back().shape()));
    parts.push_back({entry.name + ".npy",
                     {std::as_bytes(std::span(headers.back())), bytes_of(written.back())}});
  }
  write_zip(path, parts);
}

}  // namespace artel
