// Numbers in text files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace artel::data {

// Parses a number ("7", "+1.5", "-2e-3", "inf", "nan", in upper or lower case) that spans the whole
// text. Numbers beyond the range of double become infinite or 0.
std::optional<double> parse_number(std::string_view text);

// "1.5" for "1,5"; empty if the text is not a number with a decimal comma.
std::optional<std::string> with_decimal_point(std::string_view text);

}  // namespace artel::data
