#include "artel/data/tables/number.h"

#include <algorithm>
#include <charconv>
#include <limits>

namespace artel::data {
namespace {

// True if a number outside the range of double is too large rather than too small, by the decimal
// place of its first significant digit.
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

// The usual case, a few digits with or without a point: both the digits and the power of ten are
// exact as double, so their quotient is rounded as it should be. Nothing for any other text.
std::optional<double> parse_short(std::string_view text) {
  constexpr size_t kMostDigits = 15;
  static constexpr double kPowers[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                       1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
  const bool negative = text.starts_with('-');
  const char* at = text.data() + negative;
  const char* const end = text.data() + text.size();
  uint64_t whole = 0;  // wraps around with too many digits
  const auto read_digits = [&] {
    const char* const begin = at;
    for (; at != end && *at >= '0' && *at <= '9'; ++at)
      whole = whole * 10 + static_cast<uint64_t>(*at - '0');
    return static_cast<size_t>(at - begin);
  };
  const size_t before_point = read_digits();
  size_t after_point = 0;
  if (at != end && *at == '.') {
    ++at;
    after_point = read_digits();
  }
  const size_t digits = before_point + after_point;
  if (at != end || digits == 0 || digits > kMostDigits) return std::nullopt;
  const double value = static_cast<double>(whole) / kPowers[after_point];
  return negative ? -value : value;
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  if (const std::optional<double> number = parse_short(text)) return number;
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

std::optional<std::string> with_decimal_point(std::string_view text) {
  const size_t comma = text.find(',');
  if (comma == text.npos || text.find('.') != text.npos) return std::nullopt;
  std::string number(text);
  number[comma] = '.';
  if (!parse_number(number)) return std::nullopt;
  return number;
}

}  // namespace artel::data
