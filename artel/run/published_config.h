// The config.json of models as Hugging Face publishes them: GPT-2 and BERT (transformers) and
// vision transformers (timm). What changes the result is obeyed or refused by name; what does not
// (dropout, token numbers, the version of a tool) is skipped.
#pragma once

#include <string>

#include "artel/run/config.h"

namespace artel {

// The model with all that its file says: sizes, vocabulary, activation, epsilon, head. `where`
// names the file in messages. Throws an Error of kind corrupt for what is not JSON or lacks a size,
// of kind unsupported for a model or a property that Artel does not have.
ModelConfig parse_published_config(const std::string& text, const std::string& where);

// Throws unless a network that begins with the weights of this published model computes what they
// were trained for. Shapes are checked with the weights; this is about all that they do not show.
// Networks outside of these families are not judged.
void check_published(const ModelConfig& model, const std::string& text, const std::string& where);

}  // namespace artel
