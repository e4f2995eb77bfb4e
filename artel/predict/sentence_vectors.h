// Sentence vectors from the last hidden states of a BERT.
#pragma once

#include <string>
#include <vector>

#include "artel/data/text/word_piece.h"
#include "artel/tensor/tensor.h"

namespace artel {

// Tokens [texts, positions], i32, padded to the longest text, as input for BERT. Throws for a text
// that needs more than `most` positions.
Tensor token_rows(const data::WordPiece& tokenizer, const std::vector<std::string>& texts,
                  int64_t most);

// The mean over the tokens of each text, excluding padding, scaled to length 1: [texts, width].
// `tokens` [texts, positions], `hidden` [texts, positions, width].
Tensor mean_vectors(const Tensor& tokens, const Tensor& hidden, int32_t padding = 0);

// Cosines [rows, rows] of all pairs of rows, which must have length 1.
Tensor cosines(const Tensor& vectors);

}  // namespace artel
