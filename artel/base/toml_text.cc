#include "artel/base/toml_text.h"

#include <algorithm>
#include <cctype>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel {
namespace {

// Position after the string that starts at `at`. The parser reports unterminated strings.
size_t end_of_string(std::string_view text, size_t at) {
  const char quote = text[at];
  const bool several_lines = text.substr(at).starts_with(std::string(3, quote));
  const std::string close(several_lines ? 3 : 1, quote);
  for (size_t i = at + close.size(); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (text.substr(i).starts_with(close)) {
      i += close.size();
      // Up to two quotes before the closing ones are part of the string.
      for (int more = 0; several_lines && more < 2 && i < text.size() && text[i] == quote; ++more)
        ++i;
      return i;
    } else if (text[i] == '\n' && !several_lines) {
      return i;
    }
  }
  return text.size();
}

// Throws if a key has too many parts, because the recursive parser would overflow the stack.
void check_dotted_keys(std::string_view text, std::string_view name) {
  constexpr int kMostParts = 64;
  int dots = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      i = end_of_string(text, i) - 1;
    } else if (c == '#') {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (c == '.') {
      require(++dots < kMostParts, ErrorKind::corrupt, "[{}:{}] a key of more than {} parts", name,
              1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(i), '\n'),
              kMostParts);
    } else if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) {
      dots = 0;
    }
  }
}

// "; text needs quotes: set = "csv"" for a line of the form `set = csv`, or "".
std::string hint_for_line(std::string_view text, int64_t number) {
  const std::vector<std::string> lines = split(text, '\n');
  if (number < 1 || number > std::ssize(lines)) return "";
  const std::string& line = lines[static_cast<size_t>(number - 1)];
  const size_t equals = line.find('=');
  if (equals == std::string::npos) return "";
  const std::string_view key = trim(std::string_view(line).substr(0, equals));
  const std::string_view value = trim(std::string_view(line).substr(equals + 1));
  const bool is_word = !value.empty() && std::isalpha(static_cast<unsigned char>(value[0])) &&
                       value.find_first_of("\"'[]{}#=") == std::string_view::npos;
  return is_word ? fmt::format("; text needs quotes: {} = \"{}\"", key, value) : "";
}

}  // namespace

toml::table parse_toml(std::string_view text, std::string_view name) {
  check_dotted_keys(text, name);
  try {
    return toml::parse(text, name);
  } catch (const toml::parse_error& error) {
    const int64_t line = error.source().begin.line;
    fail(ErrorKind::corrupt, "[{}:{}] invalid TOML: {}{}", name, line, error.description(),
         hint_for_line(text, line));
  }
}

}  // namespace artel
