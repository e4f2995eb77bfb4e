#include "artel/checkpoint/pieces.h"

#include <set>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/checkpoint/weights.h"

namespace artel::checkpoint {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

constexpr uint64_t kMostIndexBytes = uint64_t{100} << 20;
constexpr const char* kMap = "weight_map";

}  // namespace

bool is_plain_name(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\\\0", 3)) == name.npos;
}

std::map<std::string, std::string> parse_piece_index(const std::string& text,
                                                     const std::string& where) {
  try {
    const json index = parse_json(text, where);
    require(index.is_object() && index.contains(kMap) && index.at(kMap).is_object(),
            ErrorKind::corrupt, "[{}] is not an index of weights: expected an object with \"{}\"",
            where, kMap);
    std::map<std::string, std::string> files;
    for (const auto& [tensor, file] : index.at(kMap).items()) {
      require(
          file.is_string() && is_plain_name(file.get_ref<const std::string&>()), ErrorKind::corrupt,
          "[{}] tensor '{}' is said to be in {}, expected the name of a file in the same folder",
          where, tensor, json_excerpt(file));
      files.emplace(tensor, file);
    }
    return files;
  } catch (const json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", where, error.what());
  }
}

NamedTensors load_pieces(const fs::path& index) {
  const std::string where = index.string();
  const auto file_of = parse_piece_index(read_file(index, kMostIndexBytes), where);
  std::map<std::string, std::set<std::string>> expected;  // tensors of each file
  for (const auto& [tensor, file] : file_of) expected[file].insert(tensor);
  NamedTensors all;
  for (auto& [file, tensors] : expected) {
    const fs::path path = index.parent_path() / file;
    require(
        fs::is_regular_file(path), ErrorKind::not_found,
        "[{}] '{}' is missing, the file of {} tensors such as '{}'; fetch all files of the model",
        where, file, tensors.size(), *tensors.begin());
    for (NamedTensor& each : parse_weights(map_file(path))) {
      const auto listed = file_of.find(each.name);
      require(listed != file_of.end(), ErrorKind::corrupt,
              "[{}] tensor '{}' is not in the index '{}'", path.string(), each.name,
              index.filename().string());
      require(listed->second == file, ErrorKind::corrupt,
              "[{}] has the tensor '{}', but the index lists it in '{}'", path.string(), each.name,
              listed->second);
      tensors.erase(each.name);
      all.push_back(std::move(each));
    }
    require(tensors.empty(), ErrorKind::corrupt,
            "[{}] lacks the tensor '{}', which the index lists in it", path.string(),
            tensors.empty() ? "" : *tensors.begin());
  }
  return all;
}

}  // namespace artel::checkpoint
