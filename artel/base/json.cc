#include "artel/base/json.h"

#include <algorithm>
#include <set>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/json_values.h"

namespace artel {
namespace {

using Json = nlohmann::json;

constexpr size_t kMostNested = 64;
// Lists and objects take the most memory per byte of text. This is a lower bound on their average
// length in ordinary texts.
constexpr size_t kBytesOfContainer = 8, kAlwaysContainers = 100'000;

// "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without the part for
// programmers.
std::string_view reason(const Json::exception& error) {
  const std::string_view text = error.what();
  const size_t end = text.find("] ");
  return end == text.npos ? text : text.substr(end + 2);
}

// Scans a text without storing it, to refuse harmful text before it takes memory.
class Inspector final : public Json::json_sax_t {
 public:
  Inspector(std::string_view where, size_t bytes)
      : where_(where), bytes_(bytes), most_(kAlwaysContainers + bytes / kBytesOfContainer) {}

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return true; }
  bool start_array(size_t) override { return enter(); }
  bool end_array() override { return leave(); }
  bool start_object(size_t) override { return enter(); }
  bool end_object() override { return leave(); }
  bool key(string_t& name) override {
    require(keys_.back().insert(name).second, ErrorKind::corrupt, "[{}] has '{}' twice", where_,
            name);
    return true;
  }
  // The actual parser reports the error.
  bool parse_error(size_t, const std::string&, const Json::exception&) override { return false; }

 private:
  bool enter() {
    require(keys_.size() < kMostNested, ErrorKind::corrupt,
            "[{}] JSON that nests deeper than {} levels", where_, kMostNested);
    require(++containers_ <= most_, ErrorKind::corrupt,
            "[{}] JSON with more than {} lists and objects in {} bytes", where_, most_, bytes_);
    keys_.emplace_back();
    return true;
  }
  bool leave() {
    keys_.pop_back();
    return true;
  }

  std::string_view where_;
  size_t bytes_, most_, containers_ = 0;
  std::vector<std::set<std::string>> keys_;  // one set per open list or object
};

void inspect(std::string_view text, std::string_view where) {
  Inspector inspector(where, text.size());
  Json::sax_parse(text, &inspector);
}

template <typename Value>
Value value_or_null(std::string_view text) try {
  // Most texts are short lines that cannot nest deeply.
  const auto opens = std::ranges::count_if(text, [](char c) { return c == '[' || c == '{'; });
  if (opens > static_cast<ptrdiff_t>(kMostNested)) inspect(text, "");
  Value value = Value::parse(text, nullptr, false);
  return value.is_discarded() ? Value() : value;
} catch (const Error&) {
  return {};
}

}  // namespace

Json parse_json(std::string_view text, std::string_view where) {
  inspect(text, where);
  try {
    return Json::parse(text);
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] is damaged, or not JSON: {}", where, reason(error));
  }
}

Json json_or_null(std::string_view text) { return value_or_null<Json>(text); }

nlohmann::ordered_json ordered_json_or_null(std::string_view text) {
  return value_or_null<nlohmann::ordered_json>(text);
}

std::optional<int64_t> whole_number(const Json& value) try {
  return value.is_number() ? std::optional(value.get<int64_t>()) : std::nullopt;
} catch (const Json::exception&) {
  return {};
}

std::string json_excerpt(const Json& value) {
  constexpr size_t kMost = 100;
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > kMost) text.replace(kMost, text.npos, " ...");
  return text;
}

}  // namespace artel
