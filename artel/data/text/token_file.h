// A text as tokens in an NPY file: texts larger than memory are tokenised once.
#pragma once

#include "artel/data/text/tokenizer.h"
#include "artel/tensor/tensor.h"

namespace artel::data {

struct TokenisedText {
  TokenizerPtr tokenizer;
  Tensor tokens;  // [count], in the narrowest of u8, i16 and i32 that holds them
};

// The tokens of a file, in memory; the tokenizer is made by make_tokenizer. Errors name the file.
TokenisedText tokenise_file(const std::filesystem::path& text, const std::string& tokenizer);

// The same with the tokens in a mapped file. The first call makes tokenizer and tokens, piece by
// piece, in a separate folder inside `folder`; its name is that of the text's file plus a key for
// the contents of the text and of the tokenizer's files. The log says so. Several processes may
// call this at the same time: one works, the others wait. What an interrupted call leaves behind is
// never mistaken for a complete result, and the next call for the same text removes it.
TokenisedText tokenise_once(const std::filesystem::path& text, const std::string& tokenizer,
                            const std::filesystem::path& folder);

}  // namespace artel::data
