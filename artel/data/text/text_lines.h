// Texts with one sample per line: names, addresses, formulas.
#pragma once

#include <cstdint>

#include "artel/base/bytes.h"
#include "artel/data/dataset.h"
#include "artel/data/text/tokenizer.h"

namespace artel::data {

// A sample begins with the token of a line feed, and its target ends with one, so a network that
// continues a line feed generates a line. Lines longer than `context` are cut, which is logged.
// Shorter ones are padded with line feeds as inputs and ignored targets (-100). Empty lines are
// skipped. Throws if a line feed is not one token, as with WordPiece.
DatasetPtr text_lines(const Bytes& text, TokenizerPtr tokenizer, int64_t context);

}  // namespace artel::data
