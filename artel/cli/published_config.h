// The config.json of models as Hugging Face publishes them.
#pragma once

#include <string>

#include "artel/train/config.h"

namespace artel::cli {

// The sizes of a GPT-2 or BERT, vocabulary included. `where` names the file in messages. Throws an
// Error of kind corrupt for what is not JSON or lacks a size, of kind unsupported for models that
// Artel has not.
ModelConfig parse_published_config(const std::string& text, const std::string& where);

}  // namespace artel::cli
