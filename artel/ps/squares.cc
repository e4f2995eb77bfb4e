#include "artel/ps/squares.h"

#include <charconv>
#include <sstream>

#include "artel/base/error.h"

namespace artel::ps {

std::string to_text(const Squares& squares) {
  std::string text;
  for (const auto& [key, square] : squares) text += fmt::format("{} {}\n", key, square);
  return text;
}

Squares squares_from_text(std::string_view text) {
  Squares squares;
  std::istringstream words{std::string(text)};
  std::string number;
  for (uint64_t key = 0; words >> key;) {
    words >> number;
    const char* const end = number.data() + number.size();
    const auto read = std::from_chars(number.data(), end, squares[key]);
    require(read.ec == std::errc() && read.ptr == end, ErrorKind::corrupt,
            "[ps] squares: got '{}' for key {}, expected a number", number, key);
  }
  require(words.eof(), ErrorKind::corrupt, "[ps] squares: not readable: '{}'", text);
  return squares;
}

}  // namespace artel::ps
