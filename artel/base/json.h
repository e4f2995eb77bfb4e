// JSON from files and messages that anybody may have written.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

namespace artel {

// Throws an Error of kind corrupt that names `where` for text that is not JSON, that nests deeper
// than anything of ours (what walks through it may recurse), that would take far more memory than
// it has bytes, or that has a key twice in an object.
nlohmann::json parse_json(std::string_view text, std::string_view where);

// A value for a message: short, whatever it is.
std::string json_excerpt(const nlohmann::json& value);

}  // namespace artel
