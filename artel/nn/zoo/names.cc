#include "artel/nn/zoo/names.h"

#include "artel/nn/zoo/bert.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/llama.h"
#include "artel/nn/zoo/vit.h"

namespace artel::nn {

std::string apply_rules(const NameRules& rules, std::string name) {
  for (const auto& [published, ours] : rules) {
    if (published.starts_with('^')) {
      if (name.starts_with(published.substr(1))) name = ours + name.substr(published.size() - 1);
      continue;
    }
    for (size_t at = name.find(published); at != name.npos;
         at = name.find(published, at + ours.size()))
      name.replace(at, published.size(), ours);
  }
  return name;
}

NameRules published_names(const std::string& model) {
  if (model.starts_with("gpt2")) return gpt2_names();
  if (model.starts_with("llama")) return llama_names();
  if (model.starts_with("bert")) return bert_names();
  if (model.starts_with("vit")) return vit_names();
  return {};
}

NamedTensors rename_published(const std::string& model, NamedTensors tensors) {
  const NameRules rules = published_names(model);
  for (NamedTensor& entry : tensors) entry.name = apply_rules(rules, entry.name);
  return tensors;
}

std::optional<TokenHead> token_head(const std::string& model) {
  if (predicts_next_tokens(model))
    return TokenHead{"lm_head.weight",
                     model == "llama" ? "model.embed_tokens.weight" : "wte.weight"};
  if (model == "bert_masked" || model == "bert_pretraining")
    return TokenHead{"cls.predictions.decoder.weight", "bert.embeddings.word_embeddings.weight"};
  return std::nullopt;
}

bool predicts_next_tokens(const std::string& model) {
  return (model.starts_with("gpt2") || model == "llama") && !model.ends_with(kClassifierSuffix);
}

bool classifies_texts(const std::string& model) {
  return model.ends_with(kClassifierSuffix) || model == "bert_next_sentence";
}

}  // namespace artel::nn
