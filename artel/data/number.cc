#include "artel/data/number.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace artel::data {
namespace {

// Whether digits that double cannot hold are too large for it, not too small: the decimal place of
// the first one that counts tells.
bool is_huge(std::string_view digits) {
  const size_t end = std::min(digits.find_first_of("eE"), digits.size());
  double exponent = 0;
  if (end < digits.size()) {
    std::string_view text = digits.substr(end + 1);
    if (text.starts_with('+')) text.remove_prefix(1);
    std::from_chars(text.data(), text.data() + text.size(), exponent);
  }
  const size_t point = std::min(digits.find('.'), end);
  return static_cast<double>(point) - static_cast<double>(digits.find_first_of("123456789")) +
             exponent >
         0;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (text.starts_with('+') && !text.starts_with("+-")) text.remove_prefix(1);
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (stop != end || error == std::errc::invalid_argument) return std::nullopt;
  if (error == std::errc()) return value;
  const bool negative = text.starts_with('-');
  const double size = is_huge(text) ? std::numeric_limits<double>::infinity() : 0;
  return negative ? -size : size;
}

}  // namespace artel::data
