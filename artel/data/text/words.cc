#include <array>

#include "artel/data/text/byte_pair.h"
#include "artel/data/text/unicode.h"

namespace artel::data {
namespace {

enum class Kind { letter, number, space, other };

Kind kind_of(uint32_t code) {
  if (code < 0x80) {
    const auto c = static_cast<char>(code);
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return Kind::letter;
    if (c >= '0' && c <= '9') return Kind::number;
    return unicode::is_space(code) ? Kind::space : Kind::other;
  }
  if (unicode::is_letter(code)) return Kind::letter;
  if (unicode::is_number(code)) return Kind::number;
  return unicode::is_space(code) ? Kind::space : Kind::other;
}

// How many bytes starting at `at` are of one kind; `last` is where the last of these characters
// begins.
struct Stretch {
  Kind kind;
  size_t end, last;
};

Stretch stretch_at(std::string_view text, size_t at) {
  const Kind kind = kind_of(unicode::first_code_point(text.substr(at)).code);
  Stretch result{kind, at, at};
  while (result.end < text.size()) {
    const auto [code, bytes] = unicode::first_code_point(text.substr(result.end));
    if (kind_of(code) != kind) break;
    result.last = result.end;
    result.end += bytes;
  }
  return result;
}

}  // namespace

std::string_view first_word(std::string_view text) {
  constexpr std::array<std::string_view, 7> contractions = {"'s", "'t",  "'re", "'ve",
                                                            "'m", "'ll", "'d"};
  for (const std::string_view contraction : contractions)
    if (text.starts_with(contraction)) return text.substr(0, contraction.size());
  const bool space_before = text.size() > 1 && text[0] == ' ';
  const Stretch first = stretch_at(text, space_before ? 1 : 0);
  if (first.kind != Kind::space) return text.substr(0, first.end);
  // White space up to the last one before a word, which may take that one.
  const bool word_follows = first.end < text.size();
  const bool several = first.last > 0;
  return text.substr(0, word_follows && several ? first.last : first.end);
}

std::string_view first_without_numbers(std::string_view text) {
  size_t end = 0;
  while (end < text.size()) {
    const auto [code, bytes] = unicode::first_code_point(text.substr(end));
    if (kind_of(code) == Kind::number) return text.substr(0, end == 0 ? bytes : end);
    end += bytes;
  }
  return text;
}

}  // namespace artel::data
