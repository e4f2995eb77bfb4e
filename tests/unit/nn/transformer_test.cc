// Parts of transformers, their names and their errors. Numbers against PyTorch: parity_test.cc.
#include "artel/nn/transformer.h"

#include <gtest/gtest.h>

#include <set>

#include "artel/base/error.h"
#include "artel/nn/model.h"
#include "artel/nn/zoo/bert.h"
#include "artel/nn/zoo/gpt2.h"
#include "artel/nn/zoo/llama.h"
#include "artel/nn/zoo/registry.h"
#include "artel/nn/zoo/vit.h"

namespace artel::nn {
namespace {

std::map<std::string, Shape> parameters_of(const Layer& layer, const TensorType& x) {
  const ModelGraph model = inference_graph(layer, x);
  std::map<std::string, Shape> shapes;
  for (const ValueId id : model.graph.of_kind(ValueKind::parameter))
    shapes[model.graph.value(id).name] = model.graph.type(id).shape;
  return shapes;
}

int64_t count(const std::map<std::string, Shape>& parameters) {
  int64_t total = 0;
  for (const auto& [name, shape] : parameters) total += shape.elements();
  return total;
}

const TensorType kTokens = {DType::i32, {2, 16}};

TEST(Gpt2, HasTheParametersOfThePublishedModel) {
  const auto parameters = parameters_of(gpt2(), kTokens);
  EXPECT_EQ(count(parameters), 124439808);
  EXPECT_EQ(parameters.at("h.11.attn.c_attn.weight"), (Shape{768, 2304}));
  EXPECT_EQ(parameters.at("wpe.weight"), (Shape{1024, 768}));
  EXPECT_EQ(apply_rules(gpt2_names(), "transformer.h.0.ln_1.bias"), "h.0.ln_1.bias");
}

TEST(Llama, HasTheParametersOfThePublishedModel) {
  const auto parameters = parameters_of(model_by_name("llama"), kTokens);
  EXPECT_EQ(count(parameters), 134515008);  // of SmolLM2-135M
  EXPECT_EQ(parameters.at("model.layers.29.self_attn.k_proj.weight"), (Shape{192, 576}));
  EXPECT_EQ(parameters.at("model.layers.0.mlp.down_proj.weight"), (Shape{576, 1536}));
  EXPECT_FALSE(parameters.contains("lm_head.weight"));
  for (const auto& [theirs, ours] : std::map<std::string, std::string>{
           {"blk.3.attn_q.weight", "model.layers.3.self_attn.q_proj.weight"},
           {"blk.3.attn_norm.weight", "model.layers.3.input_layernorm.weight"},
           {"blk.3.attn_output.weight", "model.layers.3.self_attn.o_proj.weight"},
           {"output_norm.weight", "model.norm.weight"},
           {"output.weight", "lm_head.weight"},
           {"token_embd.weight", "model.embed_tokens.weight"},
           {"model.norm.weight", "model.norm.weight"}})
    EXPECT_EQ(apply_rules(llama_names(), theirs), ours);
}

TEST(Llama, SizesFollowTheOptions) {
  const auto parameters = parameters_of(
      model_by_name("llama", {.width = 64, .depth = 1, .heads = 4, .untied_head = true}), kTokens);
  EXPECT_EQ(parameters.at("model.layers.0.self_attn.k_proj.weight"), (Shape{64, 64}));
  EXPECT_EQ(parameters.at("model.layers.0.mlp.up_proj.weight"), (Shape{192, 64}));
  EXPECT_TRUE(parameters.contains("lm_head.weight"));
  EXPECT_THROW(parameters_of(model_by_name("llama", {.heads = 9, .key_heads = 2}), kTokens), Error);
  EXPECT_THROW(parameters_of(model_by_name("llama", {.positions = 8}), kTokens), Error);
  EXPECT_THROW(model_by_name("gpt2", {.key_heads = 2}), Error);
}

TEST(Bert, HasTheParametersOfThePublishedModel) {
  const auto parameters = parameters_of(bert({.head = BertHead::pretraining}), kTokens);
  EXPECT_EQ(count(parameters), 110106428);  // of BERT base with both heads
  EXPECT_TRUE(parameters.contains("bert.encoder.layer.11.attention.self.query.weight"));
  EXPECT_TRUE(parameters.contains("cls.predictions.transform.LayerNorm.weight"));
  EXPECT_TRUE(parameters.contains("cls.seq_relationship.bias"));
  EXPECT_EQ(apply_rules(bert_names(), "encoder.layer.0.output.LayerNorm.gamma"),
            "bert.encoder.layer.0.output.LayerNorm.weight");
  EXPECT_EQ(apply_rules(bert_names(), "bert.pooler.dense.bias"), "bert.pooler.dense.bias");
}

TEST(Vit, HasTheParametersOfThePublishedModel) {
  const TensorType images = {DType::f32, {1, 3, 224, 224}};
  EXPECT_EQ(count(parameters_of(model_by_name("vit_tiny"), images)), 5717416);
  const auto parameters = parameters_of(model_by_name("vit_base"), images);
  EXPECT_EQ(count(parameters), 86567656);
  EXPECT_EQ(parameters.at("pos_embed"), (Shape{1, 197, 768}));
  for (const auto& [theirs, ours] : std::map<std::string, std::string>{
           {"class_token", "cls_token"},
           {"encoder.layers.encoder_layer_3.self_attention.in_proj_weight",
            "blocks.3.attn.qkv.weight"},
           {"encoder.layers.encoder_layer_11.mlp.3.bias", "blocks.11.mlp.fc2.bias"},
           {"heads.head.weight", "head.weight"}}) {
    EXPECT_EQ(apply_rules(vit_names(), theirs), ours);
    EXPECT_TRUE(parameters.contains(ours)) << ours;
  }
}

TEST(Transformers, RefuseWhatDoesNotFit) {
  const auto build = [](const Layer& layer, const TensorType& x) {
    return [=] { parameters_of(layer, x); };
  };
  EXPECT_THROW(build(gpt2({.positions = 8}), kTokens)(), Error);
  EXPECT_THROW(build(gpt2(), {DType::f32, {2, 16}})(), Error);
  EXPECT_THROW(build(bert(), {DType::i32, {2, 3, 16}})(), Error);
  EXPECT_THROW(build(vit({.patch = 7}), {DType::f32, {1, 3, 32, 32}})(), Error);
  EXPECT_THROW(build(gpt2({.heads = 7}), kTokens)(), Error);
  EXPECT_THROW(model_by_name("lenet5", {.heads = 2}), Error);
}

TEST(Layers, SwigluAndCrossAttentionHaveTheirParameters) {
  const TensorType x = {DType::f32, {2, 5, 12}};
  EXPECT_EQ(parameters_of(swiglu(20), x).at("up_proj.weight"), (Shape{20, 12}));
  const Layer cross("cross", [](Build& build, Value v) {
    return multi_head_attention(build, v, {.heads = 3}, slice(v, 1, 0, 4));
  });
  EXPECT_EQ(count(parameters_of(cross, x)), 4 * (12 * 12 + 12));
  EXPECT_EQ(count(parameters_of(self_attention({.heads = 3, .rotary = true, .bias = false}), x)),
            4 * 12 * 12);
}

}  // namespace
}  // namespace artel::nn
