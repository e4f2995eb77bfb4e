#include "artel/nn/transformer.h"

#include <cmath>

#include "artel/base/error.h"
#include "artel/nn/initialisers.h"

namespace artel::nn {
namespace {

void check_sequence(Build& build, Value x, std::string_view what) {
  require(x.shape().rank() == 3, ErrorKind::shape,
          "[layer '{}'] {}: got {}, expected [batch, positions, width]", build.graph().scope(),
          what, to_string(x.shape()));
}

// A table [positions, columns] of wave(angle), angle = position * base^(-column / columns).
Tensor waves(int64_t positions, int64_t columns, double base, double (*wave)(double)) {
  Tensor table({positions, columns});
  float* out = table.values<float>().data();
  for (int64_t p = 0; p < positions; ++p)
    for (int64_t i = 0; i < columns; ++i)
      *out++ = static_cast<float>(
          wave(static_cast<double>(p) *
               std::pow(base, -static_cast<double>(i) / static_cast<double>(columns))));
  return table;
}

Value constant_waves(Build& build, const char* name, Tensor table, Shape shape) {
  return build.graph().constant(build.graph().scoped(name), table.reshaped(std::move(shape)));
}

}  // namespace

DenseOptions transformer_dense(float deviation, WeightOrder order) {
  return {.order = order, .weight = normal(deviation), .initial_bias = constant(0)};
}

Value add_learned_positions(Build& build, Value x, std::string_view name, int64_t positions) {
  check_sequence(build, x, "positions");
  const int64_t used = x.shape()[1];
  require(used <= positions, ErrorKind::shape,
          "[{}] got {} positions, expected at most {}; try a smaller data.context or a larger "
          "model.positions",
          build.graph().scoped(name), used, positions);
  const Value table = build.parameter(name, {positions, x.shape()[2]}, normal(0.02f));
  if (build.places()) return add(x, artel::embedding(build.places(), table));
  return add(x, used == positions ? table : slice(table, 0, 0, used));
}

Value add_sinusoidal_positions(Build& build, Value x) {
  check_sequence(build, x, "sinusoidal positions");
  const int64_t positions = x.shape()[1], width = x.shape()[2];
  require(width % 2 == 0, ErrorKind::shape,
          "sinusoidal positions: got width {}, expected an even one", width);
  const Shape shape = {positions, width / 2};
  const Value table =
      concat({constant_waves(build, "sine", waves(positions, width / 2, 10000, std::sin), shape),
              constant_waves(build, "cosine", waves(positions, width / 2, 10000, std::cos), shape)},
             1);
  return add(x, table);
}

Value rotary_table(Build& build, int64_t positions, int64_t head_width, double base) {
  require(head_width % 2 == 0, ErrorKind::shape,
          "rotary positions: got heads of width {}, expected an even one", head_width);
  const int64_t half = head_width / 2;
  const Tensor cosines = waves(positions, half, base, std::cos);
  const Tensor sines = waves(positions, half, base, std::sin);
  Tensor table({positions, head_width});
  for (int64_t p = 0; p < positions; ++p) {
    float* row = table.values<float>().data() + p * head_width;
    std::copy_n(cosines.values<float>().data() + p * half, half, row);
    std::copy_n(sines.values<float>().data() + p * half, half, row + half);
  }
  return build.graph().constant(build.graph().scoped("angles"), table);
}

Value rotate_positions(Build& build, Value x, int64_t heads, double base) {
  check_sequence(build, x, "rotary positions");
  build.require_whole_text("rotary positions");
  return rotary(x, rotary_table(build, x.shape()[1], x.shape()[2] / heads, base), heads);
}

Value causal_attention(Build& build, Value qkv, int64_t heads, int64_t positions, double dropout) {
  check_sequence(build, qkv, "attention");
  if (!build.places())
    return attention(qkv,
                     {.heads = heads, .causal = true, .dropout = build.training() ? dropout : 0.0});
  const Value cache = build.state(kCacheName, {2, positions, qkv.shape()[2] / 3}, 0);
  return cached_attention(qkv, cache, build.places(), heads);
}

namespace {

// Each of `heads` heads `times` times, one after another.
Value repeat_heads(Value x, int64_t heads, int64_t times) {
  const int64_t batch = x.shape()[0], positions = x.shape()[1], width = x.shape()[2] / heads;
  const Value split = artel::reshape(x, {batch, positions, heads, 1, width});
  return artel::reshape(broadcast_to(split, {batch, positions, heads, times, width}),
                        {batch, positions, heads * times * width});
}

}  // namespace

Value grouped_attention(Build& build, Value q, Value k, Value v, GroupedHeads heads,
                        int64_t positions, double dropout) {
  check_sequence(build, q, "attention");
  if (build.places()) {
    const Value cache = build.state(kCacheName, {2, positions, k.shape()[2]}, 0);
    return cached_attention(concat({q, k, v}, 2), cache, build.places(), heads.heads,
                            heads.key_heads);
  }
  if (const int64_t times = heads.heads / heads.key_heads; times > 1) {
    k = repeat_heads(k, heads.key_heads, times);
    v = repeat_heads(v, heads.key_heads, times);
  }
  return attention(
      q, k, v, {.heads = heads.heads, .causal = true, .dropout = build.training() ? dropout : 0.0});
}

Value multi_head_attention(Build& build, Value x, const AttentionLayerOptions& options,
                           Value context, Value mask) {
  check_sequence(build, x, "attention");
  build.require_whole_text("attention");
  const int64_t width = x.shape()[2];
  DenseOptions dense_options = transformer_dense();
  dense_options.bias = options.bias;
  const auto project = [&](const char* name, Value from) {
    return named(name, dense(width, dense_options))(build, from);
  };
  const Value from = context ? context : x;
  Value q = project("query", x), k = project("key", from);
  const Value v = project("value", from);
  if (options.rotary) {
    const Graph::Scope scope(build.graph(), "rotary");
    q = rotate_positions(build, q, options.heads);
    k = rotate_positions(build, k, options.heads);
  }
  const double dropout = build.training() ? options.dropout : 0.0;
  return project("out", attention(q, k, v, {options.heads, options.causal, mask, dropout}));
}

Layer self_attention(AttentionLayerOptions options) {
  return {"self_attention",
          [=](Build& build, Value x) { return multi_head_attention(build, x, options); }};
}

Layer feed_forward(int64_t hidden, std::string activation) {
  return {"feed_forward", [=](Build& build, Value x) {
            const int64_t width = x.shape().back();
            x = named("fc1", dense(hidden, transformer_dense()))(build, x);
            return named("fc2", dense(width, transformer_dense()))(build, unary(activation, x));
          }};
}

Layer swiglu(int64_t hidden) {
  return {"swiglu", [=](Build& build, Value x) {
            DenseOptions options = transformer_dense();
            options.bias = false;
            const auto project = [&](const char* name, Value from, int64_t units) {
              return named(name, dense(units, options))(build, from);
            };
            const Value gate = unary("silu", project("gate_proj", x, hidden));
            return project("down_proj", mul(gate, project("up_proj", x, hidden)), x.shape().back());
          }};
}

Layer patch_embedding(int64_t width, int64_t patch) {
  return {"patch_embedding", [=](Build& build, Value x) {
            const Shape& shape = x.shape();
            require(shape.rank() == 4 && shape[2] % patch == 0 && shape[3] % patch == 0,
                    ErrorKind::shape,
                    "[layer '{}'] patches: got {}, expected images whose sides are multiples of {}",
                    build.graph().scope(), to_string(shape), patch);
            const Value map =
                named("proj", conv(width, {patch, patch},
                                   {.stride = {patch, patch}, .weight = truncated_normal(0.02f)}))(
                    build, x);
            return artel::reshape(transpose(map, {0, 2, 3, 1}), {shape[0], -1, width});
          }};
}

Value prepend_token(Build& build, Value x, std::string_view name) {
  check_sequence(build, x, "token");
  const int64_t batch = x.shape()[0], width = x.shape()[2];
  const Value token = build.parameter(name, {1, 1, width}, normal(0.02f));
  return concat({broadcast_to(token, {batch, 1, width}), x}, 1);
}

Value take_position(Value x, int64_t index) {
  require(x.shape().rank() == 3 && index < x.shape()[1], ErrorKind::shape,
          "position {}: got {}, expected [batch, positions, width] with more positions", index,
          to_string(x.shape()));
  return artel::reshape(slice(x, 1, index, index + 1), {x.shape()[0], x.shape()[2]});
}

Value last_position_scores(Build& build, Value x, int64_t classes) {
  const Value last = take_position(x, x.shape()[1] - 1);
  return named("classifier", dense(classes, transformer_dense()))(build, last);
}

}  // namespace artel::nn
