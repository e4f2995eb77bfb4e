#include "artel/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/tensor/from_bytes.h"

namespace artel::checkpoint {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // the limit of the reference implementation
constexpr size_t kDataAlignment = 64;
constexpr size_t kPartBytes = size_t{256} << 10;

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
  uint64_t begin, end;  // offsets in the data section
};

Entry parse_entry(const std::string& name, const json& value, const std::string& file) {
  const std::string type = value.at("dtype");
  const auto known =
      std::find_if(kTypes.begin(), kTypes.end(), [&](auto& t) { return t.first == type; });
  require(known != kTypes.end(), ErrorKind::unsupported,
          "[{}] tensor '{}' has the element type {}, which Artel does not read", file, name, type);
  std::vector<int64_t> extents;
  for (const json& extent : value.at("shape")) {
    if (!extent.is_number_unsigned())
      fail(ErrorKind::corrupt, "[{}] tensor '{}' has the extent {}, expected a whole number", file,
           name, json_excerpt(extent));
    extents.push_back(extent.get<int64_t>());
  }
  const json& offsets = value.at("data_offsets");
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned() || offsets[0] > offsets[1])
    fail(ErrorKind::corrupt, "[{}] tensor '{}' has the data_offsets {}, expected [begin, end]",
         file, name, json_excerpt(offsets));
  return {name, known->second, Shape(std::move(extents)), offsets[0], offsets[1]};
}

json parse_header(ByteReader& reader) {
  const auto length = reader.little<uint64_t>();
  reader.require(length <= kMaxHeader, "a header of {} bytes; at most {} are allowed", length,
                 kMaxHeader);
  const std::string_view text = reader.take_text(length);
  json header = parse_json(text, reader.name());
  reader.require(header.is_object(), "the header is not a JSON object");
  return header;
}

Safetensors parse(const Bytes& bytes, bool mapped) {
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
    if (mapped) part = with_own_pages(part);
    part.name = fmt::format("{}: tensor '{}'", bytes.name, entry.name);
    result.tensors.push_back({entry.name, tensor_over(part, std::move(entry.shape), entry.type)});
  }
  require(end == data.data.size(), ErrorKind::corrupt,
          "[{}] the tensors take {} bytes, but the file holds {}", bytes.name, end,
          data.data.size());
  return result;
}

}  // namespace

Safetensors parse_safetensors(const Bytes& bytes) { return parse(bytes, false); }

Safetensors read_safetensors(const std::filesystem::path& path) {
  return parse(map_file(path), true);
}

FileSummary write_safetensors(const std::filesystem::path& path,
                              const std::vector<TensorSource>& tensors, const Metadata& metadata) {
  // Wide types come first, so that every tensor is aligned without gaps, which the format forbids.
  std::vector<const TensorSource*> order;
  for (const TensorSource& tensor : tensors) order.push_back(&tensor);
  std::stable_sort(order.begin(), order.end(), [](const TensorSource* a, const TensorSource* b) {
    return size_of(a->type) > size_of(b->type);
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  std::set<std::string> names;
  uint64_t offset = 0;
  for (const TensorSource* tensor : order) {
    require(names.insert(tensor->name).second && tensor->name != "__metadata__",
            ErrorKind::invalid_argument, "[{}] the tensor name '{}' is used twice or reserved",
            path.string(), tensor->name);
    // Appends without a lookup, which would take quadratic time in the number of tensors.
    header.get_ref<nlohmann::ordered_json::object_t&>().emplace_back(
        tensor->name, nlohmann::ordered_json{{"dtype", type_name(tensor->type)},
                                             {"shape", tensor->shape.extents()},
                                             {"data_offsets", {offset, offset + tensor->bytes()}}});
    offset += tensor->bytes();
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

  AtomicFile file(path);
  uint32_t checksum = 0;
  const auto write = [&](std::span<const std::byte> bytes) {
    // Processes parts small enough to be in the cache when they are written.
    while (!bytes.empty()) {
      const auto part = bytes.first(std::min(bytes.size(), kPartBytes));
      checksum = crc32(part, checksum);
      file.write(part);
      bytes = bytes.subspan(part.size());
    }
  };
  write(length);
  write(std::as_bytes(std::span(text)));
  for (const TensorSource* tensor : order) tensor->give(write);
  require(file.bytes() == length.size() + text.size() + offset, ErrorKind::internal,
          "[{}] got {} bytes of tensors, expected {}", path.string(),
          file.bytes() - length.size() - text.size(), offset);
  file.finish();
  return {file.bytes(), checksum};
}

FileSummary write_safetensors(const std::filesystem::path& path, const NamedTensors& tensors,
                              const Metadata& metadata) {
  return write_safetensors(path, sources_of(tensors), metadata);
}

}  // namespace artel::checkpoint
