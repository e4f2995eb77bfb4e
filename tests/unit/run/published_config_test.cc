#include "artel/run/config/published_config.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "tests/support/error_of.h"

namespace artel {
namespace {

// The files with further properties in front.
std::string gpt2(const std::string& more = "") {
  return "{" + more +
         R"("model_type": "gpt2", "n_embd": 24, "n_layer": 2, "n_head": 3, "n_positions": 32,)"
         R"("vocab_size": 40})";
}
std::string bert(const std::string& more = "") {
  return "{" + more +
         R"("model_type": "bert", "hidden_size": 24, "num_hidden_layers": 2,)"
         R"("num_attention_heads": 3, "max_position_embeddings": 20, "intermediate_size": 60,)"
         R"("vocab_size": 50})";
}
std::string vit(const std::string& name, const std::string& more = "") {
  return R"({"architecture": ")" + name + R"(", "num_classes": 1000)" + more + "}";
}

std::string parse_error(const std::string& text) {
  return artel::error_of([&] { parse_published_config(text, "config.json"); });
}

std::string check_error(const ModelConfig& model, const std::string& text) {
  return artel::error_of([&] { check_published(model, text, "config.json"); });
}

// Defaults of the package that wrote the files.
TEST(PublishedConfig, HasTheDefaultsOfItsFamily) {
  const ModelConfig a = parse_published_config(gpt2(), "config.json");
  EXPECT_EQ(a.name, "gpt2");
  EXPECT_EQ(a.width, 24);
  EXPECT_EQ(a.heads, 3);
  EXPECT_EQ(a.hidden, 96);
  EXPECT_EQ(a.activation, "gelu_tanh");
  EXPECT_EQ(a.epsilon, 1e-5);
  EXPECT_FALSE(a.untied_head);
  const ModelConfig b = parse_published_config(bert(), "config.json");
  EXPECT_EQ(b.hidden, 60);
  EXPECT_EQ(b.activation, "gelu");
  EXPECT_EQ(b.epsilon, 1e-12);
}

TEST(PublishedConfig, IsObeyed) {
  const ModelConfig a = parse_published_config(
      gpt2(R"("activation_function": "swish", "layer_norm_epsilon": 1e-3, "n_inner": 50,)"
           R"("tie_word_embeddings": false, "scale_attn_weights": true, "attn_pdrop": 0.1,)"),
      "config.json");
  EXPECT_EQ(a.activation, "silu");
  EXPECT_EQ(a.epsilon, 1e-3);
  EXPECT_EQ(a.hidden, 50);
  EXPECT_TRUE(a.untied_head);
  EXPECT_EQ(parse_published_config(gpt2(R"("n_inner": null,)"), "config.json").hidden, 96);
  const ModelConfig b = parse_published_config(
      bert(R"("hidden_act": "gelu_new", "layer_norm_eps": 1e-5,)"), "config.json");
  EXPECT_EQ(b.activation, "gelu_tanh");
  EXPECT_EQ(b.epsilon, 1e-5);
  EXPECT_EQ(parse_published_config(vit("vit_small_patch32_224"), "config.json").name, "vit_small");
  EXPECT_EQ(parse_published_config(vit("vit_small_patch32_224"), "config.json").patch, 32);
}

TEST(PublishedConfig, KnowsLlama) {
  const auto llama = [](const std::string& more = "") {
    return R"({"model_type": "llama", "hidden_size": 24, "num_hidden_layers": 2,)" + more +
           R"("num_attention_heads": 4, "intermediate_size": 64, "vocab_size": 40,)"
           R"("max_position_embeddings": 32})";
  };
  const ModelConfig a = parse_published_config(llama(), "config.json");
  EXPECT_EQ(a.name, "llama");
  EXPECT_EQ(a.key_heads, 4);
  EXPECT_EQ(a.rotary_base, 10000);
  EXPECT_EQ(a.epsilon, 1e-6);
  EXPECT_TRUE(a.untied_head);
  const ModelConfig b = parse_published_config(
      llama(R"("num_key_value_heads": 2, "rope_theta": 5e5, "tie_word_embeddings": true,)"),
      "config.json");
  EXPECT_EQ(b.key_heads, 2);
  EXPECT_EQ(b.rotary_base, 5e5);
  EXPECT_FALSE(b.untied_head);
  for (const char* more : {R"("rope_scaling": {"type": "linear"},)", R"("attention_bias": true,)",
                           R"("head_dim": 5,)"}) {
    const std::string name = std::string(more).substr(1, std::string(more).find('"', 1) - 1);
    EXPECT_TRUE(parse_error(llama(more)).starts_with("[config.json] " + name + ":"))
        << parse_error(llama(more));
  }
}

TEST(PublishedConfig, RefusesByNameWhatArtelDoesNotCompute) {
  EXPECT_EQ(parse_error(gpt2(R"("activation_function": "quick_gelu",)")),
            "[config.json] activation_function: got \"quick_gelu\", which Artel does not have; it "
            "supports gelu, gelu_new, relu and silu");
  EXPECT_EQ(
      parse_error(gpt2(R"("scale_attn_by_inverse_layer_idx": true,)")),
      "[config.json] scale_attn_by_inverse_layer_idx: got true, but Artel supports only false");
  for (const char* more :
       {R"("scale_attn_weights": false,)", R"("add_cross_attention": true,)",
        R"("pruned_heads": {"0": [1]},)", R"("quantization_config": {"bits": 4},)"}) {
    const std::string name = std::string(more).substr(1, std::string(more).find('"', 1) - 1);
    EXPECT_TRUE(parse_error(gpt2(more)).starts_with("[config.json] " + name + ":"))
        << parse_error(gpt2(more));
  }
  for (const char* more :
       {R"("position_embedding_type": "relative_key",)", R"("is_decoder": true,)",
        R"("pad_token_id": 1,)", R"("type_vocab_size": 1,)", R"("hidden_act": "mish",)"}) {
    const std::string name = std::string(more).substr(1, std::string(more).find('"', 1) - 1);
    EXPECT_TRUE(parse_error(bert(more)).starts_with("[config.json] " + name + ":"))
        << parse_error(bert(more));
  }
  EXPECT_NE(parse_error(vit("vit_base_patch16_clip_224")).find("architecture: got"),
            std::string::npos);
  EXPECT_NE(parse_error(vit("vit_tiny_patch16_224", R"(, "global_pool": "avg")"))
                .find("global_pool: got \"avg\""),
            std::string::npos);
  EXPECT_NE(parse_error(vit("vit_tiny_patch16_224", R"(, "model_args": {"init_values": 1})"))
                .find("init_values = 1"),
            std::string::npos);
  EXPECT_NE(parse_error(R"({"model_type": "vit"})").find("model_type: got \"vit\""),
            std::string::npos);
}

TEST(PublishedConfig, RefusesDamage) {
  EXPECT_EQ(parse_error("[1]"), "[config.json] is not a JSON object");
  EXPECT_EQ(parse_error(gpt2(R"("layer_norm_epsilon": 0,)")),
            "[config.json] layer_norm_epsilon: got 0, expected a number above 0 and at most 1");
  EXPECT_NE(parse_error(gpt2(R"("activation_function": 7,)")), "");
  EXPECT_NE(parse_error(gpt2(R"("tie_word_embeddings": "yes",)")), "");
  EXPECT_NE(parse_error("{"), "");
}

// Properties without effect on shapes must also match the network that starts from the weights.
TEST(PublishedConfig, IsComparedWithTheNetworkThatTakesItsWeights) {
  const ModelConfig model = {.name = "gpt2", .width = 24, .heads = 3};
  EXPECT_EQ(check_error(model, gpt2()), "");
  ModelConfig other = model;
  other.heads = 4;
  EXPECT_EQ(check_error(other, gpt2()),
            "[config.json] model.heads: got 4, but the published model has 3; try model.heads = 3");
  EXPECT_EQ(check_error(model, gpt2(R"("activation_function": "relu",)")),
            "[config.json] model.activation: got \"gelu_tanh\", but the published model has "
            "\"relu\"; try model.activation = \"relu\"");
  other = model;
  other.activation = "relu";
  other.epsilon = 1e-3;
  EXPECT_EQ(
      check_error(other, gpt2(R"("activation_function": "relu", "layer_norm_epsilon": 1e-3,)")),
      "");
  EXPECT_NE(check_error(model, gpt2(R"("tie_word_embeddings": false,)"))
                .find("try model.untied_head = true"),
            std::string::npos);
  EXPECT_NE(check_error(model, bert()).find("is a \"bert\", but model.name is \"gpt2\""),
            std::string::npos);
  // For a network that does not score tokens the head does not matter.
  EXPECT_EQ(check_error({.name = "bert_classifier", .heads = 3},
                        bert(R"("tie_word_embeddings": false,)")),
            "");
  EXPECT_EQ(check_error({.name = "vit_tiny", .patch = 16}, vit("deit_tiny_patch16_224")), "");
  EXPECT_NE(check_error({.name = "vit_tiny", .patch = 4}, vit("vit_tiny_patch16_224")), "");
  // Families without such files are not checked.
  EXPECT_EQ(check_error({.name = "resnet18"}, "no JSON"), "");
}

}  // namespace
}  // namespace artel
