#include "artel/checkpoint/tfjs.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/checkpoint/pieces.h"
#include "artel/tensor/from_bytes.h"

namespace artel::checkpoint {
namespace {

using nlohmann::json;

constexpr const char* kGroups = "weightsManifest";
constexpr uint64_t kMostManifestBytes = uint64_t{100} << 20;

// Storage of a tensor's numbers: unchanged, or quantised as `stored * scale + minimum`.
struct Quantisation {
  DType stored;
  double scale = 1, minimum = 0;
};

struct ManifestTensor {
  std::string name;
  Shape shape;
  DType type;
  std::optional<Quantisation> quantisation;

  DType stored() const { return quantisation ? quantisation->stored : type; }
};

DType tfjs_type(const std::string& type, const std::string& tensor, const std::string& where) {
  if (type == "float32") return DType::f32;
  if (type == "int32") return DType::i32;
  if (type == "bool") return DType::boolean;
  fail(ErrorKind::unsupported,
       "[{}] tensor '{}' has the element type {}, which Artel does not read", where, tensor, type);
}

Quantisation parse_quantisation(const json& value, const std::string& tensor,
                                const std::string& where) {
  const std::string type = value.at("dtype");
  if (type == "float16") return {DType::f16};
  require(type == "uint8" || type == "uint16", ErrorKind::unsupported,
          "[{}] tensor '{}' is quantised to {}, expected uint8, uint16 or float16", where, tensor,
          type);
  Quantisation result{type == "uint8" ? DType::u8 : DType::i16};
  result.scale = value.at("scale").get<double>();
  result.minimum = value.at("min").get<double>();
  require(std::isfinite(result.scale) && std::isfinite(result.minimum), ErrorKind::corrupt,
          "[{}] tensor '{}' has the scale {} and the minimum {}, expected numbers", where, tensor,
          result.scale, result.minimum);
  return result;
}

ManifestTensor parse_manifest_tensor(const json& value, const std::string& where) {
  ManifestTensor result;
  result.name = value.at("name");
  std::vector<int64_t> extents;
  for (const json& extent : value.at("shape")) {
    require(extent.is_number_unsigned(), ErrorKind::corrupt,
            "[{}] tensor '{}' has the extent {}, expected a whole number", where, result.name,
            json_excerpt(extent));
    extents.push_back(extent.get<int64_t>());
  }
  result.shape = Shape(std::move(extents));
  result.type = tfjs_type(value.at("dtype"), result.name, where);
  if (value.contains("quantization"))
    result.quantisation = parse_quantisation(value.at("quantization"), result.name, where);
  require(!result.quantisation || result.type != DType::boolean, ErrorKind::corrupt,
          "[{}] tensor '{}' holds truth values, which cannot be quantised", where, result.name);
  return result;
}

// The files of a group as one sequence of bytes. A tensor may span several files.
class GroupBytes {
 public:
  explicit GroupBytes(std::vector<Bytes> files) : files_(std::move(files)) {
    for (const Bytes& file : files_) left_ += file.data.size();
  }

  uint64_t left() const { return left_; }

  // The next bytes. The caller has checked that enough are left.
  Bytes take(uint64_t size, std::string name) {
    left_ -= size;
    skip_finished();
    if (file_ < files_.size() && files_[file_].data.size() - at_ >= size) {
      Bytes part = files_[file_].part(at_, size);
      part.name = std::move(name);
      at_ += size;
      return part;
    }
    std::string joined;
    joined.reserve(size);
    while (joined.size() < size) {
      skip_finished();
      const uint64_t count =
          std::min<uint64_t>(size - joined.size(), files_[file_].data.size() - at_);
      joined += files_[file_].text().substr(at_, count);
      at_ += count;
    }
    return make_bytes(std::move(joined), std::move(name));
  }

 private:
  void skip_finished() {
    for (; file_ < files_.size() && at_ == files_[file_].data.size(); at_ = 0) ++file_;
  }

  std::vector<Bytes> files_;
  size_t file_ = 0;
  uint64_t at_ = 0;  // offset in that file
  uint64_t left_ = 0;
};

Tensor unquantised(const Tensor& stored, const ManifestTensor& tensor) {
  Tensor result(stored.shape(), tensor.type);
  const Quantisation& q = *tensor.quantisation;
  const auto fill = [&](auto at) {
    for (int64_t i = 0; i < result.elements(); ++i) {
      const double value = at(i) * q.scale + q.minimum;
      if (tensor.type == DType::f32)
        result.values<float>()[i] = static_cast<float>(value);
      else
        result.values<int32_t>()[i] =
            static_cast<int32_t>(std::clamp(std::floor(value + 0.5), -2147483648.0, 2147483647.0));
    }
  };
  if (q.stored == DType::u8) {
    const std::span<const uint8_t> from = stored.values<uint8_t>();
    fill([&](int64_t i) { return static_cast<double>(from[i]); });
  } else {
    const std::span<const int16_t> from = stored.values<int16_t>();
    fill([&](int64_t i) { return static_cast<double>(static_cast<uint16_t>(from[i])); });
  }
  return result;
}

struct Seen {
  std::set<std::string> files, tensors;
};

void append_group(const json& group, const Bytes& manifest, const OpenFile& open, Seen& seen,
                  NamedTensors& all) {
  std::vector<Bytes> files;
  for (const json& file : group.at("paths")) {
    require(file.is_string() && is_plain_name(file.get_ref<const std::string&>()),
            ErrorKind::corrupt, "[{}] names the file {}, expected one in the same folder",
            manifest.name, json_excerpt(file));
    require(seen.files.insert(file).second, ErrorKind::corrupt, "[{}] names the file {} twice",
            manifest.name, json_excerpt(file));
    files.push_back(open(file));
  }
  GroupBytes bytes(std::move(files));
  for (const json& value : group.at("weights")) {
    ManifestTensor tensor = parse_manifest_tensor(value, manifest.name);
    require(seen.tensors.insert(tensor.name).second, ErrorKind::corrupt,
            "[{}] the tensor '{}' occurs twice", manifest.name, tensor.name);
    const uint64_t left = bytes.left(), width = size_of(tensor.stored());
    const uint64_t elements = static_cast<uint64_t>(count_elements(manifest, tensor.shape));
    require(elements <= left / width, ErrorKind::corrupt,
            "[{}] tensor '{}' has {} elements of {} bytes, but its files have only {} bytes left",
            manifest.name, tensor.name, elements, width, left);
    const Tensor stored = tensor_over(
        bytes.take(elements * width, fmt::format("{}: tensor '{}'", manifest.name, tensor.name)),
        tensor.shape, tensor.stored());
    Tensor result = stored;
    if (tensor.stored() == DType::f16)
      result = stored.to(tensor.type);
    else if (tensor.quantisation)
      result = unquantised(stored, tensor);
    all.push_back({std::move(tensor.name), std::move(result)});
  }
  require(bytes.left() == 0, ErrorKind::corrupt, "[{}] {} bytes of its files belong to no tensor",
          manifest.name, bytes.left());
}

}  // namespace

bool is_tfjs_manifest(const Bytes& bytes) {
  const std::string_view text = bytes.text();
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return false;
  return text[first] == '[' || (text[first] == '{' && text.find(kGroups) != text.npos);
}

NamedTensors parse_tfjs(const Bytes& manifest, const OpenFile& open) {
  require(manifest.data.size() <= kMostManifestBytes, ErrorKind::corrupt,
          "[{}] a manifest of {} bytes; at most {} are allowed", manifest.name,
          manifest.data.size(), kMostManifestBytes);
  try {
    const json root = parse_json(manifest.text(), manifest.name);
    const bool inside = root.is_object() && root.contains(kGroups);
    require(inside || root.is_array(), ErrorKind::corrupt,
            "[{}] is not a manifest of TensorFlow.js: expected a list, or an object with \"{}\"",
            manifest.name, kGroups);
    NamedTensors all;
    Seen seen;
    for (const json& group : inside ? root.at(kGroups) : root)
      append_group(group, manifest, open, seen, all);
    return all;
  } catch (const json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", manifest.name, error.what());
  }
}

NamedTensors read_tfjs(const std::filesystem::path& manifest) {
  return parse_tfjs(map_file(manifest), [&](const std::string& name) {
    return map_file(manifest.parent_path() / name);
  });
}

}  // namespace artel::checkpoint
