// Parts of transformers: positions, attention, and feed-forward networks. Values are [batch,
// positions, width].
//
//   const artel::Model encoder = artel::nn::sequential(
//       {artel::nn::embedding(1000, 64), artel::nn::self_attention({.heads = 4, .rotary = true}),
//        artel::nn::feed_forward(256), artel::nn::dense(1000)});
#pragma once

#include "artel/graph/ops.h"
#include "artel/nn/layers.h"

namespace artel::nn {

// Weights of a transformer's dense layers start as normal numbers with this deviation, their biases
// as zeros.
DenseOptions transformer_dense(float deviation = 0.02f, WeightOrder order = WeightOrder::out_in);

// x with row i of the table `name` [positions, width] added at position i. Throws if x has more
// positions than the table.
Value add_learned_positions(Build& build, Value x, std::string_view name, int64_t positions);

// Adds fixed positions (Vaswani et al., 2017): sine in the first half of the width, cosine in the
// second.
Value add_sinusoidal_positions(Build& build, Value x);

// Angles of rotary positions as artel::rotary wants them: pair i of a head of this width is rotated
// by p * base^(-2 i / width) at position p.
Value rotary_table(Build& build, int64_t positions, int64_t head_width, double base = 10000);
// Rotary positions of queries or keys, with such a table for the heads. Head widths must be even.
Value rotate_positions(Build& build, Value x, int64_t heads, double base = 10000);

// Causal attention for qkv [batch, positions, 3 * width] with q, k, and v side by side. For
// incremental inference (Build::places), keys and values of up to `positions` tokens are cached in
// a state with this name.
inline constexpr std::string_view kCacheName = "key_value_cache";
Value causal_attention(Build& build, Value qkv, int64_t heads, int64_t positions,
                       double dropout = 0);

// Grouped-query attention (Ainslie et al., 2023): groups of heads / key_heads neighbouring heads
// share keys and values. k and v are [batch, positions, key_heads * head width].
struct GroupedHeads {
  int64_t heads, key_heads;
};
Value grouped_attention(Build& build, Value q, Value k, Value v, GroupedHeads heads,
                        int64_t positions, double dropout = 0);

// Multi-head attention with dense layers "query", "key", "value", and "out", and optional rotary
// positions. Keys and values come from `context` if it is given (cross attention). The optional
// `mask`, [batch, keys] of i32 or f32, is 0 at keys that must not be attended to. Tokens with 0 as
// padding can serve as a mask.
struct AttentionLayerOptions {
  int64_t heads = 1;
  bool causal = false;
  bool rotary = false;
  bool bias = true;
  double dropout = 0;  // of attention's probabilities, in training
};
Value multi_head_attention(Build& build, Value x, const AttentionLayerOptions& options,
                           Value context = {}, Value mask = {});
Layer self_attention(AttentionLayerOptions options);

// dense, activation, dense: names fc1 and fc2.
Layer feed_forward(int64_t hidden, std::string activation = "gelu");
// down(silu(gate(x)) * up(x)): names gate_proj, up_proj and down_proj, without biases (Shazeer,
// 2020).
Layer swiglu(int64_t hidden);

// Images [batch, channels, height, width] as rows of patches [batch, patches, width]: convolution
// "proj" whose stride is its kernel. Throws unless a whole number of patches fits the image.
Layer patch_embedding(int64_t width, int64_t patch);

// x with the parameter `name` [1, 1, width] as position 0 in front.
Value prepend_token(Build& build, Value x, std::string_view name);
// Position `index` of x: [batch, width]. Throws if x does not have it.
Value take_position(Value x, int64_t index);
// Scores of classes [batch, classes] from the last position, which has attended to all others:
// dense layer "classifier".
Value last_position_scores(Build& build, Value x, int64_t classes);

}  // namespace artel::nn
