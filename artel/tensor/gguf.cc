#include "artel/tensor/gguf.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "artel/tensor/from_bytes.h"

namespace artel {
namespace {

constexpr std::string_view kGgufMagic = "GGUF";
constexpr int64_t kBlock = 32;  // numbers that share a scale
constexpr uint64_t kMostGgufAxes = 4, kMostNameBytes = 65536;

// The kinds of values, by their numbers in the format's description.
enum class Kind : uint32_t { u8, i8, u16, i16, u32, i32, f32, truth, text, list, u64, i64, f64 };

struct StoredType {
  uint32_t number;
  GgufType type;
  int64_t elements;  // of a block
  uint64_t bytes;    // of a block
};
constexpr StoredType kStoredTypes[] = {
    {0, GgufType::f32, 1, 4},        {1, GgufType::f16, 1, 2},
    {2, GgufType::q4_0, kBlock, 18}, {3, GgufType::q4_1, kBlock, 20},
    {8, GgufType::q8_0, kBlock, 34}, {30, GgufType::bf16, 1, 2}};

// Names of the types that are not read, for messages.
std::string type_name(uint32_t number) {
  static const std::map<uint32_t, const char*> names = {
      {6, "Q5_0"},    {7, "Q5_1"},    {9, "Q8_1"},  {10, "Q2_K"},  {11, "Q3_K"},
      {12, "Q4_K"},   {13, "Q5_K"},   {14, "Q6_K"}, {15, "Q8_K"},  {16, "IQ2_XXS"},
      {20, "IQ4_NL"}, {23, "IQ4_XS"}, {28, "F64"},  {34, "TQ1_0"}, {39, "MXFP4"}};
  const auto found = names.find(number);
  return found == names.end() ? fmt::format("number {}", number) : found->second;
}

const StoredType& stored_type(GgufType type) {
  return *std::ranges::find(kStoredTypes, type, &StoredType::type);
}

std::string read_text(ByteReader& in, uint64_t most) {
  const auto size = in.little<uint64_t>();
  in.require(size <= std::min<uint64_t>(most, in.left()), "a text of {} bytes, but {} are left",
             size, in.left());
  return std::string(in.take_text(size));
}

double read_number(ByteReader& in, Kind kind) {
  switch (kind) {
    case Kind::u8:
      return in.little<uint8_t>();
    case Kind::i8:
      return in.little<int8_t>();
    case Kind::u16:
      return in.little<uint16_t>();
    case Kind::i16:
      return in.little<int16_t>();
    case Kind::u32:
      return in.little<uint32_t>();
    case Kind::i32:
      return in.little<int32_t>();
    case Kind::f32:
      return std::bit_cast<float>(in.little<uint32_t>());
    case Kind::truth:
      return in.little<uint8_t>() != 0;
    case Kind::u64:
      return static_cast<double>(in.little<uint64_t>());
    case Kind::i64:
      return static_cast<double>(in.little<int64_t>());
    case Kind::f64:
      return std::bit_cast<double>(in.little<uint64_t>());
    default:
      in.fail("a value of kind {}, which the format does not have", static_cast<uint32_t>(kind));
  }
}

Gguf::Value read_list(ByteReader& in) {
  const auto kind = static_cast<Kind>(in.little<uint32_t>());
  const auto count = in.little<uint64_t>();
  in.require(kind != Kind::list, "a list of lists, which Artel does not read");
  // Each entry takes at least one byte.
  in.require(count <= in.left(), "a list of {} entries, but {} bytes are left", count, in.left());
  if (kind == Kind::text) {
    std::vector<std::string> texts;
    for (uint64_t i = 0; i < count; ++i) texts.push_back(read_text(in, kMostNameBytes));
    return texts;
  }
  std::vector<double> numbers;
  for (uint64_t i = 0; i < count; ++i) numbers.push_back(read_number(in, kind));
  return numbers;
}

Gguf::Value read_value(ByteReader& in) {
  const auto kind = static_cast<Kind>(in.little<uint32_t>());
  if (kind == Kind::text) return read_text(in, in.left());
  if (kind == Kind::list) return read_list(in);
  return read_number(in, kind);
}

struct Placed {
  GgufTensor tensor;
  uint64_t offset;  // in the data, which follows the header
};

Placed read_tensor(ByteReader& in) {
  Placed placed;
  placed.tensor.name = read_text(in, kMostNameBytes);
  const auto axes = in.little<uint32_t>();
  in.require(axes <= kMostGgufAxes, "tensor '{}' has {} axes, expected at most {}",
             placed.tensor.name, axes, kMostGgufAxes);
  std::vector<int64_t> extents;
  for (uint32_t i = 0; i < axes; ++i) {
    const auto extent = in.little<uint64_t>();
    in.require(extent > 0 && extent < uint64_t{1} << 40, "tensor '{}' has the extent {}",
               placed.tensor.name, extent);
    extents.insert(extents.begin(), static_cast<int64_t>(extent));
  }
  placed.tensor.shape = Shape(extents);
  const auto number = in.little<uint32_t>();
  const auto* const type = std::ranges::find(kStoredTypes, number, &StoredType::number);
  require(type != std::end(kStoredTypes), ErrorKind::unsupported,
          "[{}] tensor '{}' is stored as {}, which Artel does not read; it reads F32, F16, BF16, "
          "Q4_0, Q4_1 and Q8_0",
          in.name(), placed.tensor.name, type_name(number));
  placed.tensor.type = type->type;
  in.require(axes > 0 && placed.tensor.shape.back() % type->elements == 0,
             "tensor '{}' has the shape {}, expected rows of a multiple of {} elements",
             placed.tensor.name, to_string(placed.tensor.shape), type->elements);
  placed.offset = in.little<uint64_t>();
  return placed;
}

uint64_t alignment_of(const Gguf& file) {
  if (!file.has("general.alignment")) return 32;
  const int64_t alignment = file.integer("general.alignment");
  require(alignment >= 1 && alignment <= 65536, ErrorKind::corrupt,
          "[{}] general.alignment: got {}, expected 1 to 65536", file.name, alignment);
  return static_cast<uint64_t>(alignment);
}

template <typename T>
const T& value_as(const Gguf& file, const std::string& key, const char* kind) {
  const auto found = file.values.find(key);
  require(found != file.values.end(), ErrorKind::corrupt, "[{}] {} is missing", file.name, key);
  const T* const value = std::get_if<T>(&found->second);
  require(value != nullptr, ErrorKind::corrupt, "[{}] {}: expected {}", file.name, key, kind);
  return *value;
}

uint16_t half_at(const std::byte* bytes) {
  uint16_t half;
  std::memcpy(&half, bytes, sizeof(half));
  return half;
}

}  // namespace

double Gguf::number(const std::string& key) const {
  return value_as<double>(*this, key, "a number");
}

int64_t Gguf::integer(const std::string& key) const {
  const double value = number(key);
  require(value >= 0 && value < 1e15 && value == std::floor(value), ErrorKind::corrupt,
          "[{}] {}: got {}, expected a whole number", name, key, value);
  return static_cast<int64_t>(value);
}

const std::string& Gguf::text(const std::string& key) const {
  return value_as<std::string>(*this, key, "a text");
}

const std::vector<double>& Gguf::numbers(const std::string& key) const {
  return value_as<std::vector<double>>(*this, key, "a list of numbers");
}

const std::vector<std::string>& Gguf::texts(const std::string& key) const {
  return value_as<std::vector<std::string>>(*this, key, "a list of texts");
}

bool is_gguf(const Bytes& bytes) { return bytes.text().starts_with(kGgufMagic); }

Gguf parse_gguf(const Bytes& bytes) {
  ByteReader in(bytes);
  in.require(in.take_text(4) == kGgufMagic, "not a GGUF file");
  const auto version = in.little<uint32_t>();
  require(version == 2 || version == 3, ErrorKind::unsupported,
          "[{}] GGUF version {}, expected 2 or 3", bytes.name, version);
  const auto tensors = in.little<uint64_t>(), values = in.little<uint64_t>();
  Gguf file;
  file.name = bytes.name;
  for (uint64_t i = 0; i < values; ++i) {
    std::string key = read_text(in, kMostNameBytes);
    Gguf::Value value = read_value(in);
    in.require(file.values.emplace(key, std::move(value)).second, "the key '{}' occurs twice", key);
  }
  std::vector<Placed> placed;
  std::set<std::string> names;
  for (uint64_t i = 0; i < tensors; ++i) {
    placed.push_back(read_tensor(in));
    const std::string& name = placed.back().tensor.name;
    in.require(names.insert(name).second, "the tensor '{}' occurs twice", name);
  }
  const uint64_t alignment = alignment_of(file);
  const uint64_t data = (in.offset() + alignment - 1) / alignment * alignment;
  ByteBudget budget(bytes.name);
  budget.earn(bytes.data.size());
  for (auto& [tensor, offset] : placed) {
    const StoredType& type = stored_type(tensor.type);
    const auto elements = static_cast<uint64_t>(count_elements(bytes, tensor.shape));
    const uint64_t size = elements / type.elements * type.bytes;
    budget.spend(size);
    require(data <= bytes.data.size() && offset <= bytes.data.size() - data &&
                size <= bytes.data.size() - data - offset,
            ErrorKind::corrupt,
            "[{}] tensor '{}' takes {} bytes from offset {} on, but the file has {}; it may be "
            "truncated",
            bytes.name, tensor.name, size, data + offset, bytes.data.size());
    tensor.bytes = bytes.part(data + offset, size);
    file.tensors.push_back(std::move(tensor));
  }
  return file;
}

bool is_quantised(const GgufTensor& tensor) { return stored_type(tensor.type).elements > 1; }

QuantisedMatrix quantised_matrix(const GgufTensor& tensor) {
  require(is_quantised(tensor) && tensor.shape.rank() == 2, ErrorKind::invalid_argument,
          "[{}] tensor '{}': expected a matrix of quantised numbers", tensor.bytes.name,
          tensor.name);
  const int64_t rows = tensor.shape[0], columns = tensor.shape[1], blocks = columns / kBlock;
  const bool eight = tensor.type == GgufType::q8_0, shifted = tensor.type == GgufType::q4_1;
  const int64_t code_bytes = eight ? kBlock : kBlock / 2;
  QuantisedMatrix matrix;
  matrix.codes = Tensor({rows, blocks * code_bytes}, eight ? DType::i8 : DType::u8);
  matrix.scales = Tensor({rows, blocks}, DType::f16);
  if (shifted) matrix.offsets = Tensor({rows, blocks}, DType::f16);
  const std::byte* in = tensor.bytes.data.data();
  for (int64_t i = 0; i < rows * blocks; ++i) {
    const auto store = [&](Tensor& halves) {
      const uint16_t half = half_at(in);
      std::memcpy(halves.raw() + 2 * i, &half, 2);
      in += 2;
    };
    store(matrix.scales);
    if (shifted) store(matrix.offsets);
    std::memcpy(matrix.codes.raw() + i * code_bytes, in, static_cast<size_t>(code_bytes));
    in += code_bytes;
  }
  return matrix;
}

Tensor numbers_of(const GgufTensor& tensor) {
  switch (tensor.type) {
    case GgufType::f32:
      return tensor_over(tensor.bytes, tensor.shape, DType::f32);
    case GgufType::f16:
      return tensor_over(tensor.bytes, tensor.shape, DType::f16);
    case GgufType::bf16:
      return tensor_over(tensor.bytes, tensor.shape, DType::bf16);
    default:
      break;
  }
  GgufTensor flat = tensor;
  flat.shape = {tensor.shape.elements() / tensor.shape.back(), tensor.shape.back()};
  return expand(quantised_matrix(flat)).reshaped(tensor.shape);
}

}  // namespace artel
