#include "artel/base/json.h"

#include <nlohmann/json.hpp>
#include <set>
#include <vector>

#include "artel/base/error.h"

namespace artel {
namespace {

using Json = nlohmann::json;

constexpr int kMostNested = 64;
// Lists and objects take the most memory for their bytes: few of them are shorter than this, on
// average.
constexpr size_t kBytesOfContainer = 8, kAlwaysContainers = 100'000;

// "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the part for
// programmers.
std::string_view reason(const Json::exception& error) {
  const std::string_view text = error.what();
  const size_t end = text.find("] ");
  return end == text.npos ? text : text.substr(end + 2);
}

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  std::vector<std::set<std::string>> keys;  // of the objects around the current place
  size_t containers = 0;
  const size_t most = kAlwaysContainers + text.size() / kBytesOfContainer;
  try {
    return Json::parse(text, [&](int depth, Json::parse_event_t event, Json& value) {
      require(depth < kMostNested, ErrorKind::corrupt, "[{}] JSON that nests deeper than {} levels",
              where, kMostNested);
      if (event == Json::parse_event_t::object_start || event == Json::parse_event_t::array_start)
        require(++containers <= most, ErrorKind::corrupt,
                "[{}] JSON with more than {} lists and objects in {} bytes", where, most,
                text.size());
      if (event == Json::parse_event_t::object_start) keys.emplace_back();
      if (event == Json::parse_event_t::object_end) keys.pop_back();
      if (event == Json::parse_event_t::key) {
        const auto& key = value.get_ref<const std::string&>();
        require(keys.back().insert(key).second, ErrorKind::corrupt, "[{}] has '{}' twice", where,
                key);
      }
      return true;
    });
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] is damaged, or not JSON: {}", where, reason(error));
  }
}

std::string json_excerpt(const Json& value) {
  constexpr size_t kMost = 100;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMost) text.replace(kMost, text.npos, " ...");
  return text;
}

}  // namespace artel
