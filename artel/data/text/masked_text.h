// Text for the pre-training of BERT (Devlin et al., 2018): masked tokens and next sentences.
#pragma once

#include "artel/data/dataset.h"
#include "artel/data/text/word_piece.h"

namespace artel::data {

struct MaskedTextOptions {
  int64_t context = 128;  // tokens in a sample, including [CLS] and [SEP]
  int64_t stride = 0;     // distance between the starts of samples; 0 means adjacent samples
  uint64_t seed = 0;
};

// Samples [CLS] a [SEP] b [SEP] over a token array as in text.h. Inputs are i32 [2, context],
// tokens and then types; targets are i32 [context]. a and b have equal lengths, or a is one
// shorter. b follows a in the text (target 0 at [CLS]) or, in half of the samples, comes from
// elsewhere (target 1). 15 % of the other tokens are predicted; the rest has target -100, which
// losses ignore. Of the predicted tokens, 80 % are replaced by [MASK], 10 % by a random token, and
// 10 % are unchanged. Samples are a function of (seed, sample). Throws if the text is too short for
// one sample.
DatasetPtr masked_text(Tensor tokens, std::shared_ptr<const WordPiece> tokenizer,
                       const MaskedTextOptions& options);

}  // namespace artel::data
