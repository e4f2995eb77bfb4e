// A text as tokens in an NPY file, so that texts larger than memory are tokenised once.
#pragma once

#include "artel/base/bytes.h"
#include "artel/data/text/tokenizer.h"
#include "artel/tensor/tensor.h"

namespace artel::data {

// The tokens of a text, [count], in the narrowest of u8, i16 and i32 that holds them.
Tensor tokenise(std::string_view text, const Tokenizer& tokenizer);

// The same as a mapped file in `folder`, written piece by piece if it is not there yet. Its name
// tells the text's file, size and time of change and the vocabulary. Several processes may do so
// at the same time.
Tensor token_file(const std::filesystem::path& text, const Tokenizer& tokenizer,
                  const std::filesystem::path& folder);

}  // namespace artel::data
