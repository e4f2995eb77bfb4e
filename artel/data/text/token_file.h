// A text as tokens in an NPY file, so that texts larger than memory are tokenised once.
#pragma once

#include "artel/data/text/tokenizer.h"
#include "artel/tensor/tensor.h"

namespace artel::data {

struct TokenisedText {
  TokenizerPtr tokenizer;
  Tensor tokens;  // [count], in the narrowest of u8, i16 and i32 that holds them
};

// Of a file, in memory; the tokenizer is that of make_tokenizer. Errors name the file.
TokenisedText tokenise_file(const std::filesystem::path& text, const std::string& tokenizer);

// The same with the tokens in a mapped file. Tokenizer and tokens are made by the first call, piece
// by piece, in a folder of their own below `folder`; its name is that of the text's file, with a
// key for the contents of the text and of the tokenizer's files. Lines of the log say so. Several
// processes may call this at the same time: one works, the others wait. What an interrupted call
// leaves behind is never taken for whole, and the next call for the same text removes it.
TokenisedText tokenise_once(const std::filesystem::path& text, const std::string& tokenizer,
                            const std::filesystem::path& folder);

}  // namespace artel::data
