// Text for the pre-training of BERT (Devlin et al., 2018): masked tokens and next sentences.
#pragma once

#include "artel/data/dataset.h"
#include "artel/data/text/word_piece.h"

namespace artel::data {

struct MaskedTextOptions {
  int64_t context = 128;  // tokens in a sample, with the marks
  int64_t stride = 0;     // distance between the starts of samples; 0: side by side
  uint64_t seed = 0;
};

// Samples [CLS] a [SEP] b [SEP] over tokens as text.h's windows have them: inputs i32 [2, context],
// the tokens and then their types; targets i32 [context]. a and b have equal lengths, or a is one
// shorter. b is what follows a, or in half of the samples a part from elsewhere: target 0 at [CLS],
// or 1. Of the other tokens 15 % have their number as the target, all others -100, which losses
// ignore; of those 80 % are replaced by [MASK], 10 % by any token, 10 % are left. All of it is a
// function of (seed, sample). Throws if there are not enough tokens for one sample.
DatasetPtr masked_text(Tensor tokens, std::shared_ptr<const WordPiece> tokenizer,
                       const MaskedTextOptions& options);

}  // namespace artel::data
