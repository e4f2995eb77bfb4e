#include "artel/nn/zoo/bert.h"

#include "artel/base/error.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/transformer.h"

namespace artel::nn {
namespace {

constexpr float kNever = -1e4f;  // a score that softmax turns into 0

Value projected(Build& build, const char* name, Value x, int64_t units) {
  return named(name, dense(units, transformer_dense()))(build, x);
}

Value normalised(Build& build, Value x, const BertOptions& o) {
  return named("LayerNorm", layer_norm(o.epsilon))(build, x);
}

// dense and dropout of a branch, its input added, layer norm.
Value close_branch(Build& build, Value branch, Value x, const BertOptions& o) {
  const Graph::Scope scope(build.graph(), "output");
  branch = projected(build, "dense", branch, o.width);
  branch = named("dropout", dropout(o.dropout))(build, branch);
  return normalised(build, add(branch, x), o);
}

Value attention_block(Build& build, Value x, Value mask, const BertOptions& o) {
  const Graph::Scope scope(build.graph(), "attention");
  Value y;
  {
    const Graph::Scope self(build.graph(), "self");
    y = attention(projected(build, "query", x, o.width), projected(build, "key", x, o.width),
                  projected(build, "value", x, o.width),
                  {.heads = o.heads, .mask = mask, .dropout = build.training() ? o.dropout : 0.0});
  }
  return close_branch(build, y, x, o);
}

Value encoder_layer(Build& build, Value x, Value mask, const BertOptions& o) {
  x = attention_block(build, x, mask, o);
  Value hidden;
  {
    const Graph::Scope scope(build.graph(), "intermediate");
    const int64_t units = o.hidden > 0 ? o.hidden : 4 * o.width;
    hidden = unary(o.activation, projected(build, "dense", x, units));
  }
  return close_branch(build, hidden, x, o);
}

struct Inputs {
  Value tokens, types;  // [batch, positions]; no types: all 0
};

Inputs split_inputs(Value x) {
  const Shape& shape = x.shape();
  const bool typed = shape.rank() == 3 && shape[1] == 2;
  require(x.type().dtype == DType::i32 && (shape.rank() == 2 || typed), ErrorKind::shape,
          "[bert] got inputs {}, expected tokens i32 [batch, positions] or [batch, 2, positions]",
          to_string(x.type()));
  if (!typed) return {x, {}};
  const Shape flat = {shape[0], shape[2]};
  return {artel::reshape(slice(x, 1, 0, 1), flat), artel::reshape(slice(x, 1, 1, 2), flat)};
}

Value embeddings(Build& build, const Inputs& inputs, Value table, Value type_table,
                 const BertOptions& o) {
  const Graph::Scope scope(build.graph(), "embeddings");
  Value x = artel::embedding(inputs.tokens, table);
  x = add(x,
          inputs.types ? artel::embedding(inputs.types, type_table) : slice(type_table, 0, 0, 1));
  x = add_learned_positions(build, x, "position_embeddings.weight", o.positions);
  return named("dropout", dropout(o.dropout))(build, normalised(build, x, o));
}

Value pooled(Build& build, Value hidden) {
  const Graph::Scope scope(build.graph(), "bert.pooler");
  return unary("tanh", projected(build, "dense", take_position(hidden, 0), hidden.shape()[2]));
}

Value token_scores(Build& build, Value hidden, Value table, const BertOptions& o) {
  const Graph::Scope scope(build.graph(), "cls.predictions");
  Value x = hidden;
  {
    const Graph::Scope transform(build.graph(), "transform");
    x = normalised(build, unary(o.activation, projected(build, "dense", x, o.width)), o);
  }
  if (o.untied_head) table = build.parameter("decoder.weight", table.shape(), normal(0.02f));
  return artel::dense(x, table, build.parameter("bias", {table.shape()[0]}, constant(0)));
}

Value sentence_scores(Build& build, Value hidden) {
  return projected(build, "cls.seq_relationship", pooled(build, hidden), 2);
}

Value pretraining_scores(Build& build, Value hidden, Value table, const BertOptions& o) {
  const Value tokens = token_scores(build, hidden, table, o);
  const Shape& shape = tokens.shape();
  const Value never = build.graph().constant("never", Tensor::from<float>({1}, {kNever}));
  const Value first =
      concat({sentence_scores(build, hidden), broadcast_to(never, {shape[0], shape[2] - 2})}, 1);
  return concat({artel::reshape(first, {shape[0], 1, shape[2]}), slice(tokens, 1, 1, shape[1])}, 1);
}

}  // namespace

Layer bert(const BertOptions& o) {
  return {"bert", [o](Build& build, Value x) {
            const Inputs inputs = split_inputs(x);
            Value table, hidden;
            {
              const Graph::Scope scope(build.graph(), "bert");
              table = build.parameter("embeddings.word_embeddings.weight", {o.vocabulary, o.width},
                                      normal(0.02f));
              const Value types = build.parameter("embeddings.token_type_embeddings.weight",
                                                  {2, o.width}, normal(0.02f));
              hidden = embeddings(build, inputs, table, types, o);
              for (int64_t i = 0; i < o.depth; ++i) {
                const Graph::Scope layer(build.graph(), fmt::format("encoder.layer.{}", i));
                hidden = encoder_layer(build, hidden, inputs.tokens, o);
              }
            }
            switch (o.head) {
              case BertHead::none:
                return hidden;
              case BertHead::masked_language:
                return token_scores(build, hidden, table, o);
              case BertHead::pretraining:
                return pretraining_scores(build, hidden, table, o);
              case BertHead::next_sentence:
                return sentence_scores(build, hidden);
              case BertHead::classification:
                return projected(build, "classifier", pooled(build, hidden), o.classes);
            }
            fail(ErrorKind::internal, "[bert] unknown head");
          }};
}

NameRules bert_names() {
  return {{"^embeddings.", "bert.embeddings."},
          {"^encoder.", "bert.encoder."},
          {"^pooler.", "bert.pooler."},
          {"LayerNorm.gamma", "LayerNorm.weight"},
          {"LayerNorm.beta", "LayerNorm.bias"}};
}

}  // namespace artel::nn
