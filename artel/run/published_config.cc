#include "artel/run/published_config.h"

#include <map>
#include <regex>
#include <set>

#include "artel/base/error.h"
#include "artel/base/json.h"
#include "artel/base/json_values.h"
#include "artel/nn/zoo/names.h"
#include "artel/run/setup.h"

namespace artel {
namespace {

using Json = nlohmann::json;

constexpr int64_t kLargestSize = int64_t{1} << 24;

// What a family of models calls its properties.
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

// The names of transformers' table of activations. Those with tanh are one formula, written in
// different ways.
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

// Defaults are those of transformers' GPT2Config and BertConfig.
ModelConfig read_gpt2(const File& file) {
  ModelConfig config = read_text_model(file, kGpt2Names, "gelu_new", 1e-5);
  config.name = "gpt2";
  file.expect("scale_attn_weights", true);
  file.expect("scale_attn_by_inverse_layer_idx", false);
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
  require(type == "gpt2" || type == "bert", ErrorKind::unsupported,
          "[{}] model_type: got \"{}\", expected \"gpt2\" or \"bert\", or timm's \"architecture\"",
          where, type);
  const File file(json, where);
  return type == "gpt2" ? read_gpt2(file) : read_bert(file);
}

std::string family(const std::string& model) {
  for (const char* name : {"gpt2", "bert", "vit"})
    if (model.starts_with(name)) return name;
  return "";
}

template <typename T>
void compare(const char* key, const T& ours, const T& theirs, const std::string& where) {
  require(ours == theirs, ErrorKind::invalid_argument,
          "[{}] model.{}: got {}, but the published model has {}; try model.{} = {}", where, key,
          Json(ours).dump(), Json(theirs).dump(), key, Json(theirs).dump());
}

}  // namespace

ModelConfig parse_published_config(const std::string& text, const std::string& where) {
  try {
    return parse(parse_json(text, where), where);
  } catch (const Json::exception& error) {
    fail(ErrorKind::corrupt, "[{}] {}", where, error.what());
  }
}

void check_published(const ModelConfig& model, const std::string& text, const std::string& where) {
  if (family(model.name).empty()) return;
  const ModelConfig published = parse_published_config(text, where);
  require(family(published.name) == family(model.name), ErrorKind::invalid_argument,
          "[{}] the published model is a \"{}\", but model.name is \"{}\"", where, published.name,
          model.name);
  const nn::ModelOptions ours = nn::complete_options(model.name, model_options(model, 0));
  const nn::ModelOptions theirs = nn::complete_options(published.name, model_options(published, 0));
  compare("heads", ours.heads, theirs.heads, where);
  compare("patch", ours.patch, theirs.patch, where);
  compare("activation", ours.activation, theirs.activation, where);
  compare("epsilon", ours.epsilon, theirs.epsilon, where);
  if (nn::token_head(model.name))
    compare("untied_head", ours.untied_head, theirs.untied_head, where);
}

}  // namespace artel
