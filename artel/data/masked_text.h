// Text for the pre-training of BERT (Devlin et al., 2018): masked tokens and next sentences.
#pragma once

#include "artel/data/dataset.h"
#include "artel/data/text/word_piece.h"

namespace artel::data {

struct MaskedTextOptions {
  int64_t context = 128;  // tokens in a sample, including [CLS] and [SEP]
  int64_t stride = 0;     // distance between the starts of samples; 0: side by side
  uint64_t seed = 0;
};

// Samples [CLS] a [SEP] b [SEP] over tokens as text.h's windows have them: inputs i32 [2, context],
// the tokens and then their types; targets i32 [context]. a and b have equal lengths, or a is one
// shorter. b is what follows a (target 0 at [CLS]), or in half of the samples a part from elsewhere
// (target 1). 15 % of the other tokens have their own number as the target, all others -100, which
// losses ignore. Of those 15 %, 80 % are replaced by [MASK], 10 % by a random token, and 10 % are
// left unchanged. All of this is a function of (seed, sample). Throws if there are not enough
// tokens for one sample.
DatasetPtr masked_text(Tensor tokens, std::shared_ptr<const WordPiece> tokenizer,
                       const MaskedTextOptions& options);

}  // namespace artel::data
