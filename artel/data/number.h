// Numbers in text files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace artel::data {

// A number as programs write it ("7", "+1.5", "-2e-3", "inf", "nan", in upper or lower case), with
// nothing before or after it. Numbers beyond the range of double become infinite or 0, but still
// count as numbers.
std::optional<double> parse_number(std::string_view text);

// "1.5" for "1,5"; nothing for what is no number with a decimal comma.
std::optional<std::string> with_decimal_point(std::string_view text);

}  // namespace artel::data
