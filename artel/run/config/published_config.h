// Reads the properties of published models: the config.json of Hugging Face's GPT-2, Llama, and
// BERT (transformers) and vision transformers (timm), and those in a GGUF file. Properties that
// change the result are applied, or refused by name. Others (dropout, token numbers, tool versions)
// are skipped.
#pragma once

#include <string>

#include "artel/run/config/config.h"
#include "artel/tensor/gguf.h"

namespace artel {

// Reads the configuration of a published model: sizes, vocabulary, activation, epsilon, head.
// `where` names the file in messages. Throws an Error of kind corrupt if the file is not JSON or a
// size is missing, and of kind unsupported for models or properties that Artel does not have.
ModelConfig parse_published_config(const std::string& text, const std::string& where);
// The same for a GGUF file of the architecture "llama".
ModelConfig gguf_config(const Gguf& file);

// Throws if `model` computes a different function than the published model from which its weights
// come. Checks the properties that shapes do not show; shapes are checked when the weights are
// loaded. Does not check networks of other families.
void check_published(const ModelConfig& model, const std::string& text, const std::string& where);
void check_published(const ModelConfig& model, const Gguf& file);

}  // namespace artel
