#include "artel/cli/published_config.h"

#include <nlohmann/json.hpp>

#include "artel/base/error.h"

namespace artel::cli {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestSize = int64_t{1} << 24;

int64_t size_at(const Json& json, const char* name, const std::string& where) {
  require(json.contains(name), ErrorKind::corrupt, "[{}] {} is missing", where, name);
  const Json& value = json.at(name);
  require(value.is_number_integer() && value >= 1 && value <= kLargestSize, ErrorKind::corrupt,
          "[{}] {}: got {}, expected a whole number from 1 to {}", where, name, value.dump(),
          kLargestSize);
  return value;
}

// What a family of models calls its sizes.
struct SizeNames {
  const char *width, *depth, *heads, *positions;
};
constexpr SizeNames kGpt2Names = {"n_embd", "n_layer", "n_head", "n_positions"};
constexpr SizeNames kBertNames = {"hidden_size", "num_hidden_layers", "num_attention_heads",
                                  "max_position_embeddings"};

ModelConfig read_sizes(const Json& json, const SizeNames& names, const std::string& where) {
  ModelConfig config;
  config.width = size_at(json, names.width, where);
  config.depth = size_at(json, names.depth, where);
  config.heads = size_at(json, names.heads, where);
  config.positions = size_at(json, names.positions, where);
  config.vocabulary = size_at(json, "vocab_size", where);
  return config;
}

// Throws for a BERT that differs from the published one in more than its sizes.
void check_bert(const Json& json, const ModelConfig& config, const std::string& where) {
  const int64_t hidden = size_at(json, "intermediate_size", where);
  require(hidden == 4 * config.width, ErrorKind::unsupported,
          "[{}] intermediate_size: got {}, expected {}", where, hidden, 4 * config.width);
  const std::string activation = json.value("hidden_act", "gelu");
  require(activation == "gelu", ErrorKind::unsupported,
          "[{}] hidden_act: got \"{}\", expected \"gelu\"", where, activation);
}

}  // namespace

ModelConfig parse_published_config(const std::string& text, const std::string& where) {
  try {
    const Json json = Json::parse(text);
    const std::string type = json.at("model_type");
    require(type == "gpt2" || type == "bert", ErrorKind::unsupported,
            "[{}] model_type: got \"{}\", expected \"gpt2\" or \"bert\"", where, type);
    ModelConfig config = read_sizes(json, type == "gpt2" ? kGpt2Names : kBertNames, where);
    config.name = type;
    if (type == "bert") check_bert(json, config, where);
    return config;
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", where, error.what());
  }
}

}  // namespace artel::cli
