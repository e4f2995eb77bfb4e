#include "artel/checkpoint/onnx.h"

#include <array>
#include <bit>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "artel/checkpoint/pieces.h"
#include "artel/tensor/from_bytes.h"

namespace artel::checkpoint {
namespace {

// Field numbers from the ONNX protocol buffer definition.
constexpr uint32_t kVersionField = 1, kGraphField = 7;                  // ModelProto
constexpr uint32_t kInitialiserField = 5;                               // GraphProto
constexpr uint32_t kDims = 1, kDataType = 2, kFloats = 4, kInts32 = 5,  // TensorProto
    kInts64 = 7, kName = 8, kRaw = 9, kDoubles = 10, kExternal = 13, kLocation = 14;

enum class WireType : uint32_t { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

// A field of a protocol buffer message.
struct Field {
  uint32_t number = 0;
  WireType type = WireType::varint;
  uint64_t value = 0;                // varint, fixed64, or fixed32
  std::span<const std::byte> bytes;  // length-delimited

  std::string_view text() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  }
};

uint64_t read_varint(ByteReader& in) {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    const auto next = in.little<uint8_t>();
    value |= uint64_t{next & 0x7fu} << shift;
    if (next < 0x80) return value;
  }
  in.fail("a number of more than 64 bits");
}

Field read_field(ByteReader& in) {
  const uint64_t tag = read_varint(in);
  in.require(tag >> 3 != 0 && tag >> 3 <= 536870911, "a field of number {}", tag >> 3);
  Field field{static_cast<uint32_t>(tag >> 3), static_cast<WireType>(tag & 7)};
  switch (field.type) {
    case WireType::varint:
      field.value = read_varint(in);
      return field;
    case WireType::fixed64:
      field.value = in.little<uint64_t>();
      return field;
    case WireType::bytes:
      field.bytes = in.take(read_varint(in));
      return field;
    case WireType::fixed32:
      field.value = in.little<uint32_t>();
      return field;
  }
  in.fail("a field of kind {}, which the format does not have", tag & 7);
}

struct OnnxTensor {
  std::string name;
  std::vector<int64_t> dims;
  uint64_t type = 0;
  bool external = false;
  std::map<std::string, std::string> where;  // location of external data
  std::optional<std::span<const std::byte>> raw;
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<int64_t> integers;  // int32 or int64 data
};

DType onnx_type(const OnnxTensor& tensor, const std::string& file) {
  switch (tensor.type) {
    case 1:
      return DType::f32;
    case 2:
      return DType::u8;
    case 3:
      return DType::i8;
    case 5:
      return DType::i16;
    case 6:
      return DType::i32;
    case 7:
      return DType::i64;
    case 9:
      return DType::boolean;
    case 10:
      return DType::f16;
    case 11:
      return DType::f64;
    case 16:
      return DType::bf16;
    default:
      fail(ErrorKind::unsupported,
           "[{}] tensor '{}' has the element type number {}, which Artel does not read", file,
           tensor.name, tensor.type);
  }
}

// Reads repeated numbers, packed or not.
template <typename Read>
void append_numbers(const Field& field, const std::string& file, const Read& read) {
  if (field.type != WireType::bytes) return read(nullptr);
  ByteReader in(field.bytes, file);
  while (in.left() > 0) read(&in);
}

OnnxTensor read_onnx_tensor(std::span<const std::byte> bytes, const std::string& file) {
  OnnxTensor tensor;
  ByteReader in(bytes, file);
  while (in.left() > 0) {
    const Field field = read_field(in);
    const auto integer = [&](ByteReader* packed) {
      return static_cast<int64_t>(packed ? read_varint(*packed) : field.value);
    };
    switch (field.number) {
      case kDims:
        append_numbers(field, file, [&](ByteReader* p) { tensor.dims.push_back(integer(p)); });
        break;
      case kDataType:
        tensor.type = field.value;
        break;
      case kFloats:
        append_numbers(field, file, [&](ByteReader* p) {
          const auto bits = static_cast<uint32_t>(p ? p->little<uint32_t>() : field.value);
          tensor.floats.push_back(std::bit_cast<float>(bits));
        });
        break;
      case kInts32:
      case kInts64:
        append_numbers(field, file, [&](ByteReader* p) { tensor.integers.push_back(integer(p)); });
        break;
      case kDoubles:
        append_numbers(field, file, [&](ByteReader* p) {
          tensor.doubles.push_back(std::bit_cast<double>(p ? p->little<uint64_t>() : field.value));
        });
        break;
      case kName:
        tensor.name = field.text();
        break;
      case kRaw:
        tensor.raw = field.bytes;
        break;
      case kExternal: {
        ByteReader entry(field.bytes, file);
        std::array<std::string, 2> pair;  // key, value
        while (entry.left() > 0) {
          const Field part = read_field(entry);
          if (part.number == 1 || part.number == 2) pair[part.number - 1] = part.text();
        }
        tensor.where[pair[0]] = pair[1];
        break;
      }
      case kLocation:
        tensor.external = field.value == 1;
        break;
      default:
        break;
    }
  }
  return tensor;
}

uint64_t whole_number(const OnnxTensor& tensor, const std::string& key, uint64_t otherwise,
                      const std::string& file) {
  const auto found = tensor.where.find(key);
  if (found == tensor.where.end()) return otherwise;
  uint64_t value = 0;
  const std::string& text = found->second;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  require(error == std::errc() && end == text.data() + text.size(), ErrorKind::corrupt,
          "[{}] tensor '{}' has the {} '{}', expected a whole number", file, tensor.name, key,
          text);
  return value;
}

// The external files of a model, each opened once, and the memory budget of their tensors.
class ExternalFiles {
 public:
  ExternalFiles(const std::string& model, const OpenFile& open) : open_(open), budget_(model) {}

  Bytes part(const std::string& name, uint64_t offset, uint64_t size) {
    auto found = files_.find(name);
    if (found == files_.end()) {
      found = files_.emplace(name, open_(name)).first;
      budget_.earn(found->second.data.size());
    }
    budget_.spend(size);
    return found->second.part(offset, size);
  }

 private:
  const OpenFile& open_;
  ByteBudget budget_;
  std::map<std::string, Bytes> files_;
};

Bytes external_bytes(const OnnxTensor& tensor, uint64_t size, const std::string& file,
                     ExternalFiles& files) {
  const auto location = tensor.where.find("location");
  require(location != tensor.where.end() && is_plain_name(location->second), ErrorKind::corrupt,
          "[{}] tensor '{}' is stored in '{}', expected a file in the same folder", file,
          tensor.name, location == tensor.where.end() ? "" : location->second);
  return files.part(location->second, whole_number(tensor, "offset", 0, file),
                    whole_number(tensor, "length", size, file));
}

// Converts numbers stored one by one to bytes of the element type. 16-bit floats are stored as
// their bits.
std::string listed_bytes(const OnnxTensor& tensor, DType type) {
  std::string bytes;
  const auto append = [&](const auto& value) {
    bytes.append(reinterpret_cast<const char*>(&value), sizeof(value));
  };
  if (type == DType::f32) {
    for (const float value : tensor.floats) append(value);
  } else if (type == DType::f64) {
    for (const double value : tensor.doubles) append(value);
  } else {
    for (const int64_t value : tensor.integers)
      bytes.append(reinterpret_cast<const char*>(&value), size_of(type));
  }
  return bytes;
}

Tensor make_tensor(const OnnxTensor& tensor, const Bytes& file, ExternalFiles& files) {
  const DType type = onnx_type(tensor, file.name);
  for (const int64_t extent : tensor.dims)
    require(extent >= 0, ErrorKind::corrupt, "[{}] tensor '{}' has the extent {}", file.name,
            tensor.name, extent);
  const Shape shape(tensor.dims);
  const uint64_t size = static_cast<uint64_t>(count_elements(file, shape)) * size_of(type);
  Bytes bytes;
  if (tensor.external)
    bytes = external_bytes(tensor, size, file.name, files);
  else if (tensor.raw)
    bytes = {*tensor.raw, file.name, file.keeper};
  else
    bytes = make_bytes(listed_bytes(tensor, type), file.name);
  bytes.name = fmt::format("{}: tensor '{}'", file.name, tensor.name);
  return tensor_over(bytes, shape, type);
}

}  // namespace

bool is_onnx(const Bytes& bytes) {
  // Checks the outermost fields, which begin with the version.
  try {
    ByteReader in(bytes);
    bool graph = false;
    Field first = read_field(in);
    if (first.number != kVersionField || first.type != WireType::varint || first.value > 1000)
      return false;
    while (in.left() > 0) graph = read_field(in).number == kGraphField || graph;
    return graph;
  } catch (const Error&) {
    return false;
  }
}

NamedTensors parse_onnx(const Bytes& bytes, const OpenFile& open) {
  ByteReader model(bytes);
  NamedTensors tensors;
  std::set<std::string> names;
  ExternalFiles files(bytes.name, open);
  while (model.left() > 0) {
    const Field field = read_field(model);
    if (field.number != kGraphField || field.type != WireType::bytes) continue;
    ByteReader graph(field.bytes, bytes.name);
    while (graph.left() > 0) {
      const Field part = read_field(graph);
      if (part.number != kInitialiserField || part.type != WireType::bytes) continue;
      OnnxTensor tensor = read_onnx_tensor(part.bytes, bytes.name);
      require(names.insert(tensor.name).second, ErrorKind::corrupt,
              "[{}] the tensor '{}' occurs twice", bytes.name, tensor.name);
      Tensor made = make_tensor(tensor, bytes, files);
      tensors.push_back({std::move(tensor.name), std::move(made)});
    }
  }
  return tensors;
}

NamedTensors read_onnx(const std::filesystem::path& path) {
  return parse_onnx(map_file(path),
                    [&](const std::string& name) { return map_file(path.parent_path() / name); });
}

}  // namespace artel::checkpoint
