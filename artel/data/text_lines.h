// Texts of which each line is a sample: names, addresses, formulas.
#pragma once

#include <cstdint>

#include "artel/base/bytes.h"
#include "artel/data/dataset.h"
#include "artel/data/text/tokenizer.h"

namespace artel::data {

// A sample begins with the token of a line feed, and its target ends with one, so a network that
// is asked to continue a line feed makes up a line. Lines that are longer than `context` are cut,
// which the log says; behind shorter ones the targets are ignored (-100) and the inputs are line
// feeds. Empty lines are left out. Throws if a line feed is not one token, as with WordPiece.
DatasetPtr text_lines(const Bytes& text, TokenizerPtr tokenizer, int64_t context);

}  // namespace artel::data
