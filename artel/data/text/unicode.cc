#include "artel/data/text/unicode.h"

#include <algorithm>
#include <array>

#include "artel/data/text/unicode_tables.h"

namespace artel::data::unicode {
namespace {

template <size_t kSize>
bool contains(const std::array<Range, kSize>& ranges, uint32_t code) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), code,
                       [](uint32_t c, const Range& range) { return c < range.first; });
  return after != ranges.begin() && code <= (after - 1)->last;
}

uint32_t byte_at(std::string_view text, size_t i) { return static_cast<unsigned char>(text[i]); }

// Hangul syllables are composed arithmetically from these counts.
constexpr uint32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr uint32_t kSyllableCount = 11172, kVowelCount = 21, kTailCount = 28;

void append_hangul(std::string& text, uint32_t code) {
  const uint32_t index = code - kSyllables;
  append_utf8(text, kLeads + index / (kVowelCount * kTailCount));
  append_utf8(text, kVowels + index / kTailCount % kVowelCount);
  if (index % kTailCount > 0) append_utf8(text, kTails + index % kTailCount);
}

}  // namespace

CodePoint first_code_point(std::string_view text) {
  const uint32_t lead = byte_at(text, 0);
  if (lead < 0x80) return {lead, 1};
  const size_t bytes = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  constexpr std::array<uint32_t, 5> least = {0, 0, 0x80, 0x800, 0x10000};
  if (lead < 0xC2 || lead > 0xF4 || text.size() < bytes) return {kInvalid, 1};
  uint32_t code = lead & (0x7Fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    const uint32_t next = byte_at(text, i);
    if ((next & 0xC0) != 0x80) return {kInvalid, 1};
    code = code << 6 | (next & 0x3F);
  }
  const bool valid = code >= least[bytes] && code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
  return valid ? CodePoint{code, bytes} : CodePoint{kInvalid, 1};
}

bool is_valid(std::string_view text) {
  while (!text.empty()) {
    const CodePoint first = first_code_point(text);
    if (first.code == kInvalid) return false;
    text.remove_prefix(first.bytes);
  }
  return true;
}

void append_utf8(std::string& text, uint32_t code) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | (code >> shift & 0x3F)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xC0 | code >> 6);
    tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xE0 | code >> 12);
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | code >> 18);
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_letter(uint32_t code) { return contains(kLetters, code); }
bool is_number(uint32_t code) { return contains(kNumbers, code); }
bool is_punctuation(uint32_t code) { return contains(kPunctuation, code); }
bool is_control(uint32_t code) { return contains(kControls, code); }
bool is_accent(uint32_t code) { return contains(kAccents, code); }

bool is_space(uint32_t code) {
  return code == ' ' || (code >= '\t' && code <= '\r') || code == 0x85 || code == 0xA0 ||
         code == 0x1680 || (code >= 0x2000 && code <= 0x200A) || code == 0x2028 || code == 0x2029 ||
         code == 0x202F || code == 0x205F || code == 0x3000;
}

bool is_chinese(uint32_t code) {
  constexpr std::array<Range, 8> blocks = {{{0x3400, 0x4DBF},
                                            {0x4E00, 0x9FFF},
                                            {0xF900, 0xFAFF},
                                            {0x20000, 0x2A6DF},
                                            {0x2A700, 0x2B73F},
                                            {0x2B740, 0x2B81F},
                                            {0x2B820, 0x2CEAF},
                                            {0x2F800, 0x2FA1F}}};
  return contains(blocks, code);
}

void append_folded(std::string& text, uint32_t code) {
  if (code >= kSyllables && code < kSyllables + kSyllableCount) return append_hangul(text, code);
  if (is_accent(code)) return;
  const auto found =
      std::lower_bound(kFoldings.begin(), kFoldings.end(), code,
                       [](const Folding& folding, uint32_t c) { return folding.from < c; });
  if (found == kFoldings.end() || found->from != code) return append_utf8(text, code);
  append_utf8(text, found->to);
  if (found->second) append_utf8(text, found->second);
}

}  // namespace artel::data::unicode
