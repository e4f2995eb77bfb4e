// A network that reads text, with its weights and its tokenizer.
#pragma once

#include <string>
#include <vector>

#include "artel/data/text/tokenizer.h"
#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"
#include "artel/train/config.h"

namespace artel::cli {

struct TextModel {
  ModelConfig config;
  int64_t classes = 0;  // of its last layer, as make_model wants them
  data::TokenizerPtr tokenizer;
  NamedTensors weights;  // under our names
};

// `source` is the folder of a run or one of its checkpoints; a folder as Hugging Face publishes
// models (config.json, a tokenizer, weights); or the name of such a one in the catalogue, which is
// then fetched. Throws if it has no tokenizer, or if that has other tokens than the network.
TextModel open_text_model(const std::string& source);

}  // namespace artel::cli
