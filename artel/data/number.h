// Numbers in text files.
#pragma once

#include <optional>
#include <string_view>

namespace artel::data {

// A number as programs write it ("7", "+1.5", "-2e-3", "inf", "nan", in any case), and nothing
// else. One beyond the range of double is infinite or 0: a number that is too long is still no
// word.
std::optional<double> parse_number(std::string_view text);

}  // namespace artel::data
