#include "artel/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "artel/base/file.h"
#include "artel/tensor/from_bytes.h"

namespace artel::checkpoint {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the reference implementation
constexpr size_t kDataAlignment = 64;

constexpr std::array<std::pair<std::string_view, DType>, 10> kTypes = {{{"F32", DType::f32},
                                                                        {"F64", DType::f64},
                                                                        {"F16", DType::f16},
                                                                        {"BF16", DType::bf16},
                                                                        {"I8", DType::i8},
                                                                        {"U8", DType::u8},
                                                                        {"I16", DType::i16},
                                                                        {"I32", DType::i32},
                                                                        {"I64", DType::i64},
                                                                        {"BOOL", DType::boolean}}};

std::string_view type_name(DType type) {
  return std::find_if(kTypes.begin(), kTypes.end(), [&](auto& t) { return t.second == type; })
      ->first;
}

struct Entry {
  std::string name;
  DType type;
  Shape shape;
  uint64_t begin, end;  // in the data
};

Entry parse_entry(const std::string& name, const json& value, const std::string& file) {
  const std::string type = value.at("dtype");
  const auto known =
      std::find_if(kTypes.begin(), kTypes.end(), [&](auto& t) { return t.first == type; });
  require(known != kTypes.end(), ErrorKind::unsupported,
          "[{}] tensor '{}' has the element type {}, which Artel does not read", file, name, type);
  std::vector<int64_t> extents;
  for (const json& extent : value.at("shape")) {
    require(extent.is_number_unsigned(), ErrorKind::corrupt,
            "[{}] tensor '{}' has the extent {}, expected a whole number", file, name,
            extent.dump());
    extents.push_back(extent.get<int64_t>());
  }
  const json& offsets = value.at("data_offsets");
  require(offsets.is_array() && offsets.size() == 2 && offsets[0].is_number_unsigned() &&
              offsets[1].is_number_unsigned() && offsets[0] <= offsets[1],
          ErrorKind::corrupt, "[{}] tensor '{}' has the data_offsets {}, expected [begin, end]",
          file, name, offsets.dump());
  return {name, known->second, Shape(std::move(extents)), offsets[0], offsets[1]};
}

json parse_header(ByteReader& reader) {
  const auto length = reader.little<uint64_t>();
  reader.require(length <= kMaxHeader, "a header of {} bytes; at most {} are allowed", length,
                 kMaxHeader);
  const std::string_view text = reader.take_text(length);
  const json header = json::parse(text, nullptr, false);
  reader.require(header.is_object(), "the header is not a JSON object");
  return header;
}

}  // namespace

Safetensors parse_safetensors(const Bytes& bytes) {
  ByteReader reader(bytes);
  const json header = parse_header(reader);
  const Bytes data = bytes.part(reader.offset(), reader.left());
  Safetensors result;
  std::vector<Entry> entries;
  try {
    for (const auto& [name, value] : header.items()) {
      if (name == "__metadata__")
        result.metadata = value.get<Metadata>();
      else
        entries.push_back(parse_entry(name, value, bytes.name));
    }
  } catch (const json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] bad safetensors header: {}", bytes.name, error.what());
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  uint64_t end = 0;
  for (Entry& entry : entries) {
    require(entry.begin == end, ErrorKind::corrupt,
            "[{}] tensor '{}' starts at {} of the data, expected {}: a gap or an overlap",
            bytes.name, entry.name, entry.begin, end);
    end = entry.end;
    Bytes part = data.part(entry.begin, entry.end - entry.begin);
    part.name = fmt::format("{}: tensor '{}'", bytes.name, entry.name);
    result.tensors.push_back({entry.name, tensor_over(part, std::move(entry.shape), entry.type)});
  }
  require(end == data.data.size(), ErrorKind::corrupt,
          "[{}] the tensors take {} bytes, but the file holds {}", bytes.name, end,
          data.data.size());
  return result;
}

Safetensors read_safetensors(const std::filesystem::path& path) {
  return parse_safetensors(map_file(path));
}

void write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                       const Metadata& metadata) {
  // Wide types first: then every tensor is aligned for its type without gaps, which the format
  // forbids.
  std::vector<const NamedTensor*> order;
  for (const NamedTensor& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const NamedTensor* a, const NamedTensor* b) {
    return size_of(a->tensor.dtype()) > size_of(b->tensor.dtype());
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string> names;
  std::vector<std::span<const std::byte>> parts(2);
  uint64_t offset = 0;
  for (const NamedTensor* entry : order) {
    const Tensor& tensor = entry->tensor;
    require(names.insert(entry->name).second && entry->name != "__metadata__",
            ErrorKind::invalid_argument, "[{}] the tensor name '{}' is used twice or reserved",
            path.string(), entry->name);
    header[entry->name] = {{"dtype", type_name(tensor.dtype())},
                           {"shape", tensor.shape().extents()},
                           {"data_offsets", {offset, offset + tensor.bytes()}}};
    parts.push_back({tensor.raw(), tensor.bytes()});
    offset += tensor.bytes();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const json::exception& error) {
    fail(ErrorKind::invalid_argument, "[{}] a name or metadata is not UTF-8: {}", path.string(),
         error.what());
  }
  std::array<std::byte, 8> length;
  text.append((kDataAlignment - (text.size() + length.size()) % kDataAlignment) % kDataAlignment,
              ' ');
  for (size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::byte>(text.size() >> (8 * i));
  parts[0] = length;
  parts[1] = std::as_bytes(std::span(text));
  write_file_atomically(path, parts);
}

}  // namespace artel::checkpoint
