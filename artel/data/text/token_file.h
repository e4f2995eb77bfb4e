// Tokenised texts in NPY files, for texts larger than memory.
#pragma once

#include "artel/data/text/tokenizer.h"
#include "artel/tensor/tensor.h"

namespace artel::data {

struct TokenisedText {
  TokenizerPtr tokenizer;
  Tensor tokens;  // [count], in the narrowest sufficient type of u8, i16, and i32
};

// Tokenises a file in memory with the tokenizer of make_tokenizer. Errors name the file.
TokenisedText tokenise_file(const std::filesystem::path& text, const std::string& tokenizer);

// Tokenises a file into a mapped file. The first call creates tokenizer and tokens, piece by piece,
// in a subfolder of `folder` and logs it. The subfolder is named after the text's file and a hash
// of the text and the tokenizer's files. Several processes may call this concurrently: one works,
// the others wait. An interrupted call leaves no valid result, and the next call for the same text
// cleans up.
TokenisedText tokenise_once(const std::filesystem::path& text, const std::string& tokenizer,
                            const std::filesystem::path& folder);

}  // namespace artel::data
