// Text for language models: windows of tokens, the target being the next token of each.
#pragma once

#include <filesystem>
#include <string>

#include "artel/data/dataset.h"

namespace artel::data {

struct WindowOptions {
  int64_t context = 128;  // tokens in a sample
  int64_t stride = 0;     // distance between the starts of samples; 0 means `context`
};

// Windows over tokens of type u8, i16, i32 or i64, in memory or mapped from a file larger than it.
// Input and target are i32 [context]; the target is the input moved on by one. Throws if there are
// not enough tokens for one window; a token outside of [0, vocabulary) throws when it is read.
DatasetPtr token_windows(Tensor tokens, int64_t vocabulary, const WindowOptions& options,
                         std::vector<std::string> token_names = {});

// A plain file, each byte a token; only the bytes that occur are in the vocabulary, in ascending
// order, and are named by the layout's class_names. The file is mapped. The last part of the text
// is for testing.
Split text(const std::filesystem::path& path, double test_fraction,
           const WindowOptions& options = {});

}  // namespace artel::data
