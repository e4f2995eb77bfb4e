// A network that reads text, with its weights and its tokenizer.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artel/data/text/tokenizer.h"
#include "artel/nn/model.h"
#include "artel/run/config/config.h"
#include "artel/run/config/setup.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

struct TextModel {
  ModelConfig config;
  int64_t classes = 0;  // of its last layer, as for make_model
  data::TokenizerPtr tokenizer;
  NamedTensors weights;  // under our names
  // The number of tokens in the training samples; later positions are untrained. 0 if unknown,
  // because training started from published weights or happened elsewhere.
  int64_t context = 0;
  int64_t window = 0;               // tokens per sample of the run; 0 if it is not a run
  std::optional<int32_t> end = {};  // the token that ends an answer of a chat model
  // The line feed, if each training sample was a line (data.lines).
  std::optional<int32_t> separator = {};
};

// The token that separates the samples of these data, for GenerateOptions::separator.
std::optional<int32_t> sample_separator(const DataConfig& data, const data::Tokenizer& tokenizer);

struct TextSource {
  std::string path;
  Weights weights = Weights::averaged;  // of a run
};

// `source` is the folder of a run or one of its checkpoints; a folder as Hugging Face publishes
// models (config.json, a tokenizer, weights); a GGUF file; or the name of a published model in the
// catalogue, which is then fetched. Throws if it has no tokenizer, or if the tokenizer's tokens do
// not match the network's.
TextModel open_text_model(const TextSource& source);

// Logs a warning if a text of this many tokens reaches positions that were never trained.
void warn_of_untrained_positions(const TextModel& model, const std::string& source, int64_t tokens);

}  // namespace artel
