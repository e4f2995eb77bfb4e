#include "artel/checkpoint/onnx_writer.h"

#include "artel/base/error.h"
#include "artel/base/version.h"

namespace artel::checkpoint {
namespace {

// Numbers of fields and of types are those of the format's description.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(0x80 | (value & 0x7f));
  return bytes + static_cast<char>(value);
}

std::string whole_field(int number, int64_t value) {
  return varint(static_cast<uint64_t>(number) * 8) + varint(static_cast<uint64_t>(value));
}

std::string bytes_field(int number, const std::string& bytes) {
  return varint(static_cast<uint64_t>(number) * 8 + 2) + varint(bytes.size()) + bytes;
}

std::string float_field(int number, float value) {
  return varint(static_cast<uint64_t>(number) * 8 + 5) +
         std::string(reinterpret_cast<const char*>(&value), sizeof(value));
}

int64_t number_of_type(DType type) {
  switch (type) {
    case DType::f32:
      return 1;
    case DType::i8:
      return 3;
    case DType::i32:
      return 6;
    case DType::i64:
      return 7;
    case DType::boolean:
      return 9;
    default:
      fail(ErrorKind::unsupported, "[onnx] tensors of type {} are not written", to_string(type));
  }
}

std::string attribute_bytes(const OnnxAttribute& attribute) {
  constexpr int kFloat = 1, kWhole = 2, kWholes = 7;
  std::string bytes = bytes_field(1, attribute.name);
  if (const auto* whole = std::get_if<int64_t>(&attribute.value))
    return bytes + whole_field(3, *whole) + whole_field(20, kWhole);
  if (const auto* number = std::get_if<double>(&attribute.value))
    return bytes + float_field(2, static_cast<float>(*number)) + whole_field(20, kFloat);
  for (const int64_t each : std::get<std::vector<int64_t>>(attribute.value))
    bytes += whole_field(8, each);
  return bytes + whole_field(20, kWholes);
}

std::string value_bytes(const std::string& name, const Shape& shape, DType type) {
  std::string extents;
  for (const int64_t extent : shape.extents()) extents += bytes_field(1, whole_field(1, extent));
  const std::string tensor = whole_field(1, number_of_type(type)) + bytes_field(2, extents);
  return bytes_field(1, name) + bytes_field(2, bytes_field(1, tensor));
}

}  // namespace

void OnnxWriter::input(const std::string& name, const Shape& shape, DType type) {
  names_.insert(name);
  inputs_ += bytes_field(11, value_bytes(name, shape, type));
}

void OnnxWriter::output(const std::string& name, const std::string& value, const Shape& shape,
                        DType type) {
  add_node("Identity", {value}, name, {});
  outputs_ += bytes_field(12, value_bytes(name, shape, type));
}

std::string OnnxWriter::fresh(const std::string& stem) {
  std::string name = stem;
  while (!names_.insert(name).second) name = fmt::format("{}_{}", stem, ++count_);
  return name;
}

std::string OnnxWriter::tensor(const std::string& name, const Tensor& value) {
  const std::string own = fresh(name);
  std::string bytes;
  for (const int64_t extent : value.shape().extents()) bytes += whole_field(1, extent);
  bytes += whole_field(2, number_of_type(value.dtype())) + bytes_field(8, own);
  bytes += bytes_field(9, {reinterpret_cast<const char*>(value.raw()), value.bytes()});
  tensors_ += bytes_field(5, bytes);
  return own;
}

std::string OnnxWriter::numbers(const std::vector<int64_t>& values) {
  return tensor("numbers", Tensor::from<int64_t>({std::ssize(values)}, values));
}

std::string OnnxWriter::number(float value) {
  Tensor scalar{Shape{}};
  scalar.values<float>()[0] = value;
  return tensor("number", scalar);
}

std::string OnnxWriter::node(const std::string& op, const std::vector<std::string>& inputs,
                             const std::vector<OnnxAttribute>& attributes) {
  std::string result = fresh(op);
  add_node(op, inputs, result, attributes);
  return result;
}

void OnnxWriter::add_node(const std::string& op, const std::vector<std::string>& inputs,
                          const std::string& output, const std::vector<OnnxAttribute>& attributes) {
  std::string bytes;
  for (const std::string& each : inputs) bytes += bytes_field(1, each);
  bytes += bytes_field(2, output) + bytes_field(3, output) + bytes_field(4, op);
  for (const OnnxAttribute& each : attributes) bytes += bytes_field(5, attribute_bytes(each));
  nodes_ += bytes_field(1, bytes);
}

std::string OnnxWriter::file() const {
  constexpr int64_t kFormat = 8;
  const std::string graph = nodes_ + bytes_field(2, "artel") + tensors_ + inputs_ + outputs_;
  const std::string file = whole_field(1, kFormat) + bytes_field(2, "artel") +
                           bytes_field(3, std::string(kHeaderVersion)) + bytes_field(7, graph) +
                           bytes_field(8, bytes_field(1, "") + whole_field(2, kOnnxOpset));
  require(file.size() < size_t{1} << 31, ErrorKind::unsupported,
          "[onnx] the model takes {} bytes, more than the format's limit of 2 GiB", file.size());
  return file;
}

}  // namespace artel::checkpoint
