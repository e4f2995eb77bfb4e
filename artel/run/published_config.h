// The config.json of models as Hugging Face publishes them: GPT-2 and BERT (transformers) and
// vision transformers (timm). What changes the result is obeyed or refused by name; what does not
// (dropout, token numbers, the version of a tool) is skipped.
#pragma once

#include <string>

#include "artel/run/config.h"

namespace artel {

// The model with everything its file says: sizes, vocabulary, activation, epsilon, head. `where`
// names the file in messages. Throws an Error of kind corrupt for a file that is not JSON or lacks
// a size, of kind unsupported for a model or a property that Artel does not have.
ModelConfig parse_published_config(const std::string& text, const std::string& where);

// Throws unless a network that starts from the weights of this published model computes what they
// were trained for. Shapes are checked when the weights are loaded; this checks everything that
// shapes do not show. Networks outside these families are not checked.
void check_published(const ModelConfig& model, const std::string& text, const std::string& where);

}  // namespace artel
