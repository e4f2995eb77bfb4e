#include "artel/nn/zoo/gpt2.h"

#include <cmath>

#include "artel/base/error.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/transformer.h"

namespace artel::nn {
namespace {

DenseOptions conv1d(float deviation = 0.02f) {
  return transformer_dense(deviation, WeightOrder::in_out);
}

// Layers that end a branch begin smaller, so that the sum of all branches does not grow with depth.
DenseOptions last_of_branch(const Gpt2Options& options) {
  return conv1d(0.02f / std::sqrt(2.0f * static_cast<float>(options.depth)));
}

Layer attention_branch(const Gpt2Options& o) {
  return {"attention", [o](Build& build, Value x) {
            const Value qkv = named("c_attn", dense(3 * o.width, conv1d()))(build, x);
            const Value y = attention(qkv, {.heads = o.heads, .causal = true});
            return named("c_proj", dense(o.width, last_of_branch(o)))(build, y);
          }};
}

Layer feed_forward_branch(const Gpt2Options& o) {
  return chain({named("c_fc", dense(4 * o.width, conv1d())), named("act", activation("gelu_tanh")),
                named("c_proj", dense(o.width, last_of_branch(o)))});
}

Layer block(const Gpt2Options& o) {
  return chain({residual(chain({named("ln_1", layer_norm()), named("attn", attention_branch(o)),
                                named("attn_dropout", dropout(o.dropout))}),
                         {}, false),
                residual(chain({named("ln_2", layer_norm()), named("mlp", feed_forward_branch(o)),
                                named("mlp_dropout", dropout(o.dropout))}),
                         {}, false)});
}

}  // namespace

Layer gpt2(const Gpt2Options& o) {
  return {
      "gpt2", [o](Build& build, Value tokens) {
        require(tokens.shape().rank() == 2 && tokens.type().dtype == DType::i32, ErrorKind::shape,
                "[gpt2] got inputs {}, expected tokens i32 [batch, positions]",
                to_string(tokens.type()));
        const Value table = build.parameter("wte.weight", {o.vocabulary, o.width}, normal(0.02f));
        Value x = add_learned_positions(build, artel::embedding(tokens, table), "wpe.weight",
                                        o.positions);
        x = named("drop", dropout(o.dropout))(build, x);
        for (int64_t i = 0; i < o.depth; ++i) x = named(fmt::format("h.{}", i), block(o))(build, x);
        x = named("ln_f", layer_norm())(build, x);
        const Graph::Scope scope(build.graph(), "lm_head");
        return artel::dense(x, table);
      }};
}

NameRules gpt2_names() { return {{"^transformer.", ""}}; }

}  // namespace artel::nn
