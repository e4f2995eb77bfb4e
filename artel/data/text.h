// Text for language models: windows of tokens, the target being the next token of each.
#pragma once

#include <filesystem>
#include <string>

#include "artel/data/dataset.h"
#include "artel/data/text/tokenizer.h"

namespace artel::data {

struct WindowOptions {
  int64_t context = 128;  // tokens in a sample
  int64_t stride = 0;     // distance between the starts of samples; 0 means `context`
};

// Windows over tokens of type u8, i16, i32 or i64, in memory or mapped from a file larger than it.
// Input and target are i32 [context]; the target is the input moved on by one. Throws if there are
// not enough tokens for one window; a token outside of [0, vocabulary) throws when it is read.
DatasetPtr token_windows(Tensor tokens, int64_t vocabulary, const WindowOptions& options,
                         TokenizerPtr tokenizer = {});

// Windows over a plain file, tokenised; large texts once, into a mapped file in the data folder.
// The last part of the text, `test_fraction` in [0, 1) of it, is for testing, in windows side by
// side. The layout has the tokenizer, and its names as class_names. Errors name the file.
struct TextOptions {
  WindowOptions windows = {};
  std::string tokenizer = "character";
  bool masked = false;  // samples of masked_text.h in place of windows; WordPiece only
  uint64_t seed = 0;    // of the masks
};
Split text(const std::filesystem::path& path, double test_fraction,
           const TextOptions& options = {});

}  // namespace artel::data
