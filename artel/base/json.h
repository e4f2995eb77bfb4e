// JSON from files and messages that anybody may have written.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace artel {

// Throws an Error of kind corrupt that names `where` for text that is not JSON, that nests deeper
// than anything of ours (what walks through it may recurse), that would take far more memory than
// it has bytes, or that has a key twice in an object.
nlohmann::json parse_json(std::string_view text, std::string_view where);

// The same for text that need not be JSON: null for all that parse_json refuses.
nlohmann::json json_or_null(std::string_view text);
// Objects keep the order of their keys.
nlohmann::ordered_json ordered_json_or_null(std::string_view text);

// A number that an integer can hold; nothing for other values.
std::optional<int64_t> whole_number(const nlohmann::json& value);

// A value for a message: short, whatever it is.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace artel
