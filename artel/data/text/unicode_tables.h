// Properties of code points. Made by tools/make_unicode_tables.py; ascending.
#pragma once

#include <array>
#include <cstdint>

namespace artel::data::unicode {

struct Range {
  uint32_t first, last;
};

// Lower case without accents: one code point, or two (else 0).
struct Folding {
  uint32_t from, to, second;
};

extern const std::array<Range, 648> kLetters;
extern const std::array<Range, 134> kNumbers;
extern const std::array<Range, 189> kPunctuation;
extern const std::array<Range, 336> kAccents;  // marks that combine with the letter before
extern const std::array<Range, 26> kControls;
extern const std::array<Folding, 3087> kFoldings;

}  // namespace artel::data::unicode
