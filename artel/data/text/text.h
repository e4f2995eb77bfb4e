// Text for language models: windows of tokens. The target of each token is the next one.
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

// Windows over tokens of type u8, i16, i32, or i64, in memory or mapped from a file larger than
// memory. Input and target are i32 [context]; the target is the input shifted by one. Throws if the
// tokens do not fill one window. Reading a token outside [0, vocabulary) throws.
DatasetPtr token_windows(Tensor tokens, int64_t vocabulary, const WindowOptions& options,
                         TokenizerPtr tokenizer = {});

// Windows over a tokenised text file. Large texts are tokenised once, into a mapped file in the
// data folder. The last part of the text, a share of `test_fraction` in [0, 1), is the test part,
// in adjacent windows. The layout has the tokenizer, and its tokens as class_names. Errors name the
// file.
struct TextOptions {
  WindowOptions windows = {};
  // Uses samples of text_lines.h instead of windows. A random part of them is the test part.
  bool lines = false;
  std::string tokenizer = "character";
  bool masked = false;  // uses samples of masked_text.h instead of windows; WordPiece only
  uint64_t seed = 0;    // for masks and for the test part of lines
};
Split text(const std::filesystem::path& path, double test_fraction,
           const TextOptions& options = {});

}  // namespace artel::data
