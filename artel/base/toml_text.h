// TOML as text: parsing it, with errors that name the line. Include it in sources only: it is
// large.
#pragma once

#include <string_view>

// A damaged file can violate what the parser asserts or, with NDEBUG and clang, assumes; without
// either it reports the place of the error.
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>

namespace artel {

// `name` stands for the file in messages. Throws an Error of kind corrupt for text that is not
// TOML.
toml::table parse_toml(std::string_view text, std::string_view name);

}  // namespace artel
