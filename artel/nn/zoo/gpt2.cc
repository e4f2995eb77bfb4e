#include "artel/nn/zoo/gpt2.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/transformer.h"

namespace artel::nn {
namespace {

// The published deviation from the width 768 on. Narrower networks start with larger weights, so
// that layer outputs have the same magnitude.
float initial_deviation(const Gpt2Options& o) {
  return 0.02f * std::sqrt(std::max(1.0f, 768.0f / static_cast<float>(o.width)));
}

DenseOptions conv1d(float deviation) { return transformer_dense(deviation, WeightOrder::in_out); }
DenseOptions first_of_branch(const Gpt2Options& o) { return conv1d(initial_deviation(o)); }
// Layers that end a branch begin smaller, so that the sum of all branches does not grow with depth.
DenseOptions last_of_branch(const Gpt2Options& o) {
  return conv1d(initial_deviation(o) / std::sqrt(2.0f * static_cast<float>(o.depth)));
}

Layer attention_branch(const Gpt2Options& o) {
  return {"attention", [o](Build& build, Value x) {
            const Value qkv = named("c_attn", dense(3 * o.width, first_of_branch(o)))(build, x);
            const Value y = causal_attention(build, qkv, o.heads, o.positions, o.dropout);
            return named("c_proj", dense(o.width, last_of_branch(o)))(build, y);
          }};
}

Layer feed_forward_branch(const Gpt2Options& o) {
  return chain({named("c_fc", dense(o.hidden > 0 ? o.hidden : 4 * o.width, first_of_branch(o))),
                named("act", activation(o.activation)),
                named("c_proj", dense(o.width, last_of_branch(o)))});
}

Layer block(const Gpt2Options& o) {
  return chain(
      {residual(chain({named("ln_1", layer_norm(o.epsilon)), named("attn", attention_branch(o)),
                       named("attn_dropout", dropout(o.dropout))}),
                {}, false),
       residual(chain({named("ln_2", layer_norm(o.epsilon)), named("mlp", feed_forward_branch(o)),
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
        // When reading piece by piece, only the last token's scores are needed.
        if (build.places()) x = slice(x, 1, x.shape()[1] - 1, x.shape()[1]);
        x = named("ln_f", layer_norm(o.epsilon))(build, x);
        if (o.classes > 0) return last_position_scores(build, x, o.classes);
        const Graph::Scope scope(build.graph(), "lm_head");
        if (!o.untied_head) return artel::dense(x, table);
        return artel::dense(x, build.parameter("weight", table.shape(), normal(0.02f)));
      }};
}

NameRules gpt2_names() { return {{"^transformer.", ""}}; }

}  // namespace artel::nn
