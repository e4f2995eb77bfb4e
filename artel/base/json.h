// Parsing of untrusted JSON.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace artel {

// Throws an Error of kind corrupt that names `where` if the text is not JSON, nests too deeply for
// recursive code, would take far more memory than it has bytes, or repeats a key in an object.
nlohmann::json parse_json(std::string_view text, std::string_view where);

// Like parse_json, but returns null for refused text.
nlohmann::json json_or_null(std::string_view text);
// Like json_or_null; objects keep the order of their keys.
nlohmann::ordered_json ordered_json_or_null(std::string_view text);

// The value as an integer; empty if it is not a whole number in range.
std::optional<int64_t> whole_number(const nlohmann::json& value);

// A short form of any value, for messages.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace artel
