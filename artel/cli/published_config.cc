#include "artel/cli/published_config.h"

#include <nlohmann/json.hpp>

#include "artel/base/error.h"

namespace artel::cli {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestSize = int64_t{1} << 24;

int64_t size_at(const Json& json, const char* name, const std::string& where) {
  const Json& value = json.at(name);
  require(value.is_number_integer() && value >= 1 && value <= kLargestSize, ErrorKind::corrupt,
          "[{}] {}: got {}, expected a whole number from 1 to {}", where, name, value.dump(),
          kLargestSize);
  return value;
}

ModelConfig gpt2_config(const Json& json, const std::string& where) {
  ModelConfig config;
  config.name = "gpt2";
  config.width = size_at(json, "n_embd", where);
  config.depth = size_at(json, "n_layer", where);
  config.heads = size_at(json, "n_head", where);
  config.positions = size_at(json, "n_positions", where);
  return config;
}

ModelConfig bert_config(const Json& json, const std::string& where) {
  ModelConfig config;
  config.name = "bert";
  config.width = size_at(json, "hidden_size", where);
  config.depth = size_at(json, "num_hidden_layers", where);
  config.heads = size_at(json, "num_attention_heads", where);
  config.positions = size_at(json, "max_position_embeddings", where);
  const int64_t hidden = size_at(json, "intermediate_size", where);
  require(hidden == 4 * config.width, ErrorKind::unsupported,
          "[{}] intermediate_size: got {}, expected {}", where, hidden, 4 * config.width);
  const std::string activation = json.value("hidden_act", "gelu");
  require(activation == "gelu", ErrorKind::unsupported,
          "[{}] hidden_act: got \"{}\", expected \"gelu\"", where, activation);
  return config;
}

}  // namespace

ModelConfig parse_published_config(const std::string& text, const std::string& where) {
  try {
    const Json json = Json::parse(text);
    const std::string type = json.at("model_type");
    require(type == "gpt2" || type == "bert", ErrorKind::unsupported,
            "[{}] model_type: got \"{}\", expected \"gpt2\" or \"bert\"", where, type);
    ModelConfig config = type == "gpt2" ? gpt2_config(json, where) : bert_config(json, where);
    config.vocabulary = size_at(json, "vocab_size", where);
    return config;
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", where, error.what());
  }
}

}  // namespace artel::cli
