// A network that reads text, with its weights and its tokenizer.
#pragma once

#include <string>
#include <vector>

#include "artel/data/text/tokenizer.h"
#include "artel/nn/model.h"
#include "artel/run/config.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

struct TextModel {
  ModelConfig config;
  int64_t classes = 0;  // of its last layer, as make_model wants them
  data::TokenizerPtr tokenizer;
  NamedTensors weights;  // under our names
  // Tokens of the samples that all of its positions were trained with; 0: it is not known, because
  // the training began with published weights or was somebody else's.
  int64_t context = 0;
};

// `source` is the folder of a run or one of its checkpoints; a folder as Hugging Face publishes
// models (config.json, a tokenizer, weights); or the name of such a one in the catalogue, which is
// then fetched. Throws if it has no tokenizer, or if that has other tokens than the network.
TextModel open_text_model(const std::string& source);

// A line of warning if a text of so many tokens reaches positions that were never trained.
void warn_of_untrained_positions(const TextModel& model, const std::string& source, int64_t tokens);

}  // namespace artel
