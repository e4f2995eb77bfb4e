// Text for language models: windows of tokens, the target being the next token of each.
//
//   const artel::data::Split text =
//       artel::data::text("input.txt", 0.1,
//                         {.windows = {.context = 64}, .tokenizer = "character"});
//   const artel::Model small = artel::nn::gpt2(
//       {.vocabulary = text.train->layout().classes, .width = 64, .depth = 2, .heads = 2});
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

// Windows over tokens of type u8, i16, i32 or i64, in memory or mapped from a file, which may be
// larger than memory. Input and target are i32 [context]; the target is the input shifted by one.
// Throws if there are not enough tokens for one window; a token outside [0, vocabulary) throws when
// it is read.
DatasetPtr token_windows(Tensor tokens, int64_t vocabulary, const WindowOptions& options,
                         TokenizerPtr tokenizer = {});

// Windows over a plain file, tokenised; large texts are tokenised once, into a mapped file in the
// data folder. The last part of the text, `test_fraction` in [0, 1) of it, is for testing, in
// windows side by side. The layout has the tokenizer, and its names as class_names. Errors name the
// file.
struct TextOptions {
  WindowOptions windows = {};
  // Samples of text_lines.h instead of windows; a random part of them is for testing.
  bool lines = false;
  std::string tokenizer = "character";
  bool masked = false;  // samples of masked_text.h instead of windows; WordPiece only
  uint64_t seed = 0;    // of the masks, and of the part of the lines
};
Split text(const std::filesystem::path& path, double test_fraction,
           const TextOptions& options = {});

}  // namespace artel::data
