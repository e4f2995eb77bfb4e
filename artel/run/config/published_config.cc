#include "artel/run/config/published_config.h"

#include <algorithm>
#include <map>
#include <regex>
#include <set>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/nn/zoo/names.h"
#include "artel/run/config/setup.h"

namespace artel {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestSize = int64_t{1} << 24;

// The property names of a family of models.
struct Names {
  const char *width, *depth, *heads, *positions, *hidden, *activation, *epsilon;
};
constexpr Names kGpt2Names = {"n_embd",
                              "n_layer",
                              "n_head",
                              "n_positions",
                              "n_inner",
                              "activation_function",
                              "layer_norm_epsilon"};
constexpr Names kLlamaNames = {
    "hidden_size",       "num_hidden_layers", "num_attention_heads", "max_position_embeddings",
    "intermediate_size", "hidden_act",        "rms_norm_eps"};
constexpr Names kBertNames = {
    "hidden_size",       "num_hidden_layers", "num_attention_heads", "max_position_embeddings",
    "intermediate_size", "hidden_act",        "layer_norm_eps"};

// One file: its properties, and messages that name it.
class File {
 public:
  File(const Json& json, const std::string& where) : json_(json), where_(where) {}

  // Absent and null are the same: the default.
  bool has(const char* name) const { return json_.contains(name) && !json_.at(name).is_null(); }
  const std::string& where() const { return where_; }

  int64_t size(const char* name) const {
    require(has(name), ErrorKind::corrupt, "[{}] {} is missing", where_, name);
    const Json& value = json_.at(name);
    require(value.is_number_integer() && value >= 1 && value <= kLargestSize, ErrorKind::corrupt,
            "[{}] {}: got {}, expected a whole number from 1 to {}", where_, name, value.dump(),
            kLargestSize);
    return value;
  }

  // Throws unless a property has the only value that Artel computes, which is also its default.
  void expect(const char* name, const Json& value) const {
    require(!has(name) || json_.at(name) == value, ErrorKind::unsupported,
            "[{}] {}: got {}, but Artel supports only {}", where_, name,
            has(name) ? json_.at(name).dump() : "", value.dump());
  }

  std::string text(const char* name, const char* otherwise) const {
    return has(name) ? json_.at(name).get<std::string>() : otherwise;
  }

  double number(const char* name, double otherwise) const {
    if (!has(name)) return otherwise;
    const Json& value = json_.at(name);
    require(value.is_number() && value > 0, ErrorKind::corrupt,
            "[{}] {}: got {}, expected a positive number", where_, name, value.dump());
    return value;
  }

  double epsilon(const char* name, double otherwise) const {
    if (!has(name)) return otherwise;
    const Json& value = json_.at(name);
    require(value.is_number() && value > 0 && value <= 1, ErrorKind::corrupt,
            "[{}] {}: got {}, expected a number above 0 and at most 1", where_, name, value.dump());
    return value;
  }

  bool flag(const char* name, bool otherwise) const {
    return has(name) ? json_.at(name).get<bool>() : otherwise;
  }

 private:
  const Json& json_;
  const std::string& where_;
};

// Maps the activation names of the transformers library to ours. All names with tanh are the same
// formula.
std::string our_activation(const File& file, const char* name, const char* otherwise) {
  static const std::map<std::string, std::string> ours = {{"gelu", "gelu"},
                                                          {"gelu_python", "gelu"},
                                                          {"gelu_new", "gelu_tanh"},
                                                          {"gelu_fast", "gelu_tanh"},
                                                          {"gelu_pytorch_tanh", "gelu_tanh"},
                                                          {"gelu_accurate", "gelu_tanh"},
                                                          {"relu", "relu"},
                                                          {"silu", "silu"},
                                                          {"swish", "silu"}};
  const std::string theirs = file.text(name, otherwise);
  const auto found = ours.find(theirs);
  require(
      found != ours.end(), ErrorKind::unsupported,
      "[{}] {}: got \"{}\", which Artel does not have; it supports gelu, gelu_new, relu and silu",
      file.where(), name, theirs);
  return found->second;
}

ModelConfig read_text_model(const File& file, const Names& names, const char* activation,
                            double epsilon) {
  ModelConfig config;
  config.width = file.size(names.width);
  config.depth = file.size(names.depth);
  config.heads = file.size(names.heads);
  config.positions = file.size(names.positions);
  config.vocabulary = file.size("vocab_size");
  config.hidden = file.has(names.hidden) ? file.size(names.hidden) : 4 * config.width;
  config.activation = our_activation(file, names.activation, activation);
  config.epsilon = file.epsilon(names.epsilon, epsilon);
  config.untied_head = !file.flag("tie_word_embeddings", true);
  file.expect("position_embedding_type", "absolute");
  file.expect("add_cross_attention", false);
  file.expect("pruned_heads", Json::object());
  require(!file.has("quantization_config"), ErrorKind::unsupported,
          "[{}] quantization_config: the weights are quantised, which Artel does not read; try the "
          "model in fp32, fp16 or bf16",
          file.where());
  return config;
}

// Defaults as in transformers' GPT2Config and BertConfig.
ModelConfig read_gpt2(const File& file) {
  ModelConfig config = read_text_model(file, kGpt2Names, "gelu_new", 1e-5);
  config.name = "gpt2";
  file.expect("scale_attn_weights", true);
  file.expect("scale_attn_by_inverse_layer_idx", false);
  return config;
}

// Defaults as in transformers' LlamaConfig.
ModelConfig read_llama(const File& file) {
  ModelConfig config = read_text_model(file, kLlamaNames, "silu", 1e-6);
  config.name = "llama";
  require(file.has(kLlamaNames.hidden), ErrorKind::corrupt, "[{}] {} is missing", file.where(),
          kLlamaNames.hidden);
  config.untied_head = !file.flag("tie_word_embeddings", false);
  const char* const key_heads = "num_key_value_heads";
  config.key_heads = file.has(key_heads) ? file.size(key_heads) : config.heads;
  config.rotary_base = file.number("rope_theta", 10000);
  file.expect("rope_scaling", nullptr);
  file.expect("attention_bias", false);
  file.expect("mlp_bias", false);
  file.expect("pretraining_tp", 1);
  if (file.has("head_dim")) file.expect("head_dim", config.width / config.heads);
  return config;
}

ModelConfig read_bert(const File& file) {
  ModelConfig config = read_text_model(file, kBertNames, "gelu", 1e-12);
  require(file.has(kBertNames.hidden), ErrorKind::corrupt, "[{}] {} is missing", file.where(),
          kBertNames.hidden);
  config.name = "bert";
  file.expect("is_decoder", false);
  file.expect("pad_token_id", 0);
  file.expect("type_vocab_size", 2);
  return config;
}

// timm's: the name of a whole architecture, and arguments that change it.
ModelConfig read_vit(const Json& json, const std::string& where) {
  const std::string architecture = json.at("architecture");
  static const std::regex known("(vit|deit)_(tiny|small|base)_patch([0-9]{1,3})_[0-9]{1,4}");
  std::smatch parts;
  require(
      std::regex_match(architecture, parts, known), ErrorKind::unsupported,
      "[{}] architecture: got \"{}\", expected such as \"vit_tiny_patch16_224\" (tiny, small or "
      "base)",
      where, architecture);
  File(json, where).expect("global_pool", "token");
  const Json arguments = json.value("model_args", Json::object());
  static const std::set<std::string> harmless = {"img_size", "num_classes", "in_chans"};
  for (const auto& [name, value] : arguments.items())
    require(harmless.count(name) > 0, ErrorKind::unsupported,
            "[{}] model_args: got {} = {}, which Artel does not have", where, name, value.dump());
  ModelConfig config;
  config.name = "vit_" + parts[2].str();
  config.patch = std::stoll(parts[3]);
  return config;
}

ModelConfig parse(const Json& json, const std::string& where) {
  require(json.is_object(), ErrorKind::corrupt, "[{}] is not a JSON object", where);
  if (!json.contains("model_type") && json.contains("architecture")) return read_vit(json, where);
  const std::string type = json.at("model_type");
  require(type == "gpt2" || type == "llama" || type == "bert", ErrorKind::unsupported,
          "[{}] model_type: got \"{}\", expected \"gpt2\", \"llama\" or \"bert\", or timm's "
          "\"architecture\"",
          where, type);
  const File file(json, where);
  if (type == "llama") return read_llama(file);
  return type == "gpt2" ? read_gpt2(file) : read_bert(file);
}

std::string family(const std::string& model) {
  for (const char* name : {"gpt2", "llama", "bert", "vit"})
    if (model.starts_with(name)) return name;
  return "";
}

template <typename T>
void compare(const char* key, const T& ours, const T& theirs, const std::string& where) {
  require(ours == theirs, ErrorKind::invalid_argument,
          "[{}] model.{}: got {}, but the published model has {}; try model.{} = {}", where, key,
          Json(ours).dump(), Json(theirs).dump(), key, Json(theirs).dump());
}

// Throws if a network computes something different from the published one, even with equal shapes.
void check_same(const ModelConfig& model, const ModelConfig& published, const std::string& where) {
  require(family(published.name) == family(model.name), ErrorKind::invalid_argument,
          "[{}] the published model is a \"{}\", but model.name is \"{}\"", where, published.name,
          model.name);
  const nn::ModelOptions ours = nn::complete_options(model.name, model_options(model, 0));
  const nn::ModelOptions theirs = nn::complete_options(published.name, model_options(published, 0));
  compare("heads", ours.heads, theirs.heads, where);
  compare("key_heads", ours.key_heads, theirs.key_heads, where);
  compare("patch", ours.patch, theirs.patch, where);
  compare("activation", ours.activation, theirs.activation, where);
  compare("epsilon", ours.epsilon, theirs.epsilon, where);
  compare("rotary_base", ours.rotary_base, theirs.rotary_base, where);
  if (nn::token_head(model.name))
    compare("untied_head", ours.untied_head, theirs.untied_head, where);
}

// A number that a file has as f32, as people write it.
double rounded(double value) { return std::stod(fmt::format("{:.7g}", value)); }

}  // namespace

ModelConfig parse_published_config(const std::string& text, const std::string& where) {
  try {
    return parse(parse_json(text, where), where);
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", where, error.what());
  }
}

ModelConfig gguf_config(const Gguf& file) {
  const std::string architecture = file.text("general.architecture");
  require(architecture == "llama", ErrorKind::unsupported,
          "[{}] general.architecture: got '{}', expected 'llama'", file.name, architecture);
  const auto size = [&](const std::string& key) {
    const int64_t value = file.integer("llama." + key);
    require(value >= 1 && value <= kLargestSize, ErrorKind::corrupt,
            "[{}] llama.{}: got {}, expected 1 to {}", file.name, key, value, kLargestSize);
    return value;
  };
  const auto has = [&](const std::string& key) { return file.has("llama." + key); };
  ModelConfig config;
  config.name = "llama";
  config.width = size("embedding_length");
  config.depth = size("block_count");
  config.heads = size("attention.head_count");
  config.key_heads =
      has("attention.head_count_kv") ? size("attention.head_count_kv") : config.heads;
  config.positions = size("context_length");
  config.hidden = size("feed_forward_length");
  config.activation = "silu";
  config.epsilon = rounded(file.number("llama.attention.layer_norm_rms_epsilon"));
  config.rotary_base = has("rope.freq_base") ? rounded(file.number("llama.rope.freq_base")) : 10000;
  config.untied_head =
      std::ranges::find(file.tensors, "output.weight", &GgufTensor::name) != file.tensors.end();
  const auto table = std::ranges::find(file.tensors, "token_embd.weight", &GgufTensor::name);
  require(table != file.tensors.end() && table->shape.rank() == 2, ErrorKind::corrupt,
          "[{}] the matrix token_embd.weight is missing", file.name);
  config.vocabulary = table->shape[0];
  const int64_t head_width = config.width / config.heads;
  const int64_t rotated = has("rope.dimension_count") ? size("rope.dimension_count") : head_width;
  require(rotated == head_width, ErrorKind::unsupported,
          "[{}] llama.rope.dimension_count: got {}, expected the width {} of a head", file.name,
          rotated, head_width);
  require(!has("rope.scaling.type") || file.text("llama.rope.scaling.type") == "none",
          ErrorKind::unsupported, "[{}] llama.rope.scaling.type: expected none", file.name);
  require(!has("expert_count") || file.integer("llama.expert_count") == 0, ErrorKind::unsupported,
          "[{}] llama.expert_count: networks of experts are not supported", file.name);
  return config;
}

void check_published(const ModelConfig& model, const Gguf& file) {
  check_same(model, gguf_config(file), file.name);
}

void check_published(const ModelConfig& model, const std::string& text, const std::string& where) {
  if (family(model.name).empty()) return;
  check_same(model, parse_published_config(text, where), where);
}

}  // namespace artel
