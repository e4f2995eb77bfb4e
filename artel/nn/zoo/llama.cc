#include "artel/nn/zoo/llama.h"

#include <cmath>

#include "artel/base/error.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/transformer.h"

namespace artel::nn {
namespace {

Layer project(const char* name, int64_t units, float deviation) {
  DenseOptions options = transformer_dense(deviation);
  options.bias = false;
  return named(name, dense(units, options));
}

float initial_deviation(const LlamaOptions& o) {
  return 1 / std::sqrt(static_cast<float>(o.width));
}

// Layers that end a branch begin smaller, so that the sum of all branches does not grow with depth.
float last_deviation(const LlamaOptions& o) {
  return initial_deviation(o) / std::sqrt(2.0f * static_cast<float>(o.depth));
}

Layer attention_branch(const LlamaOptions& o, Value angles) {
  return {"attention", [=](Build& build, Value x) {
            const int64_t key_width = o.width / o.heads * o.key_heads;
            const float deviation = initial_deviation(o);
            Value q = project("q_proj", o.width, deviation)(build, x);
            Value k = project("k_proj", key_width, deviation)(build, x);
            const Value v = project("v_proj", key_width, deviation)(build, x);
            q = rotary(q, angles, o.heads, build.places());
            k = rotary(k, angles, o.key_heads, build.places());
            const Value y =
                grouped_attention(build, q, k, v, {o.heads, o.key_heads}, o.positions, o.dropout);
            return project("o_proj", o.width, last_deviation(o))(build, y);
          }};
}

Layer feed_forward_branch(const LlamaOptions& o) {
  return {"feed_forward", [=](Build& build, Value x) {
            const float deviation = initial_deviation(o);
            const Value gate =
                unary(o.activation, project("gate_proj", o.hidden, deviation)(build, x));
            const Value up = project("up_proj", o.hidden, deviation)(build, x);
            return project("down_proj", o.width, last_deviation(o))(build, mul(gate, up));
          }};
}

Layer block(const LlamaOptions& o, Value angles) {
  return chain({residual(chain({named("input_layernorm", rms_norm(o.epsilon)),
                                named("self_attn", attention_branch(o, angles)),
                                named("attn_dropout", dropout(o.dropout))}),
                         {}, false),
                residual(chain({named("post_attention_layernorm", rms_norm(o.epsilon)),
                                named("mlp", feed_forward_branch(o)),
                                named("mlp_dropout", dropout(o.dropout))}),
                         {}, false)});
}

void check(const LlamaOptions& o, Value tokens) {
  require(tokens.shape().rank() == 2 && tokens.type().dtype == DType::i32, ErrorKind::shape,
          "[llama] got inputs {}, expected tokens i32 [batch, positions]",
          to_string(tokens.type()));
  require(tokens.shape()[1] <= o.positions, ErrorKind::shape,
          "[llama] got {} positions, expected at most {}; try a smaller data.context or a larger "
          "model.positions",
          tokens.shape()[1], o.positions);
  require(o.heads > 0 && o.width % o.heads == 0, ErrorKind::shape,
          "[llama] got {} heads for the width {}, expected a divisor of it", o.heads, o.width);
  require(o.key_heads > 0 && o.heads % o.key_heads == 0, ErrorKind::shape,
          "[llama] got {} key heads for {} heads, expected a divisor; set model.key_heads",
          o.key_heads, o.heads);
}

}  // namespace

Layer llama(const LlamaOptions& options) {
  LlamaOptions o = options;
  if (o.key_heads == 0) o.key_heads = o.heads;
  return {"llama", [o](Build& build, Value tokens) {
            check(o, tokens);
            const Value table = build.parameter("model.embed_tokens.weight",
                                                {o.vocabulary, o.width}, normal(0.02f));
            const int64_t positions = build.places() ? o.positions : tokens.shape()[1];
            const Value angles = rotary_table(build, positions, o.width / o.heads, o.rotary_base);
            Value x = artel::embedding(tokens, table);
            for (int64_t i = 0; i < o.depth; ++i)
              x = named(fmt::format("model.layers.{}", i), block(o, angles))(build, x);
            // When reading piece by piece, only the last token's scores are needed.
            if (build.places()) x = slice(x, 1, x.shape()[1] - 1, x.shape()[1]);
            x = named("model.norm", rms_norm(o.epsilon))(build, x);
            if (o.classes > 0) return last_position_scores(build, x, o.classes);
            const Graph::Scope scope(build.graph(), "lm_head");
            if (!o.untied_head) return artel::dense(x, table);
            return artel::dense(x, build.parameter("weight", table.shape(), normal(0.02f)));
          }};
}

NameRules llama_names() {
  return {{"^token_embd.", "model.embed_tokens."},
          {"^output_norm.", "model.norm."},
          {"^output.", "lm_head."},
          {"^blk.", "model.layers."},
          {".attn_norm.", ".input_layernorm."},
          {".ffn_norm.", ".post_attention_layernorm."},
          {".attn_q.", ".self_attn.q_proj."},
          {".attn_k.", ".self_attn.k_proj."},
          {".attn_v.", ".self_attn.v_proj."},
          {".attn_output.", ".self_attn.o_proj."},
          {".ffn_gate.", ".mlp.gate_proj."},
          {".ffn_up.", ".mlp.up_proj."},
          {".ffn_down.", ".mlp.down_proj."}};
}

}  // namespace artel::nn
