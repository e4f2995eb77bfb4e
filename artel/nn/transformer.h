// What transformers are made of: positions, attention and feed-forward networks. Values are
// [batch, positions, width].
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

// The same with fixed waves (Vaswani et al., 2017): sine in the first half of the width, cosine in
// the second.
Value add_sinusoidal_positions(Build& build, Value x);

// Rotary positions (Su et al., 2021) of queries or keys: in each head, element i and element i +
// width / 2 of position p are rotated by the angle p * base^(-2 i / width). Head widths must be
// even.
Value rotate_positions(Build& build, Value x, int64_t heads, double base = 10000);

// Causal attention of qkv [batch, positions, 3 * width] with q, k and v side by side. When a text
// is read piece by piece (Build::places), keys and values of up to `positions` tokens are kept in a
// state of this name.
inline constexpr std::string_view kCacheName = "key_value_cache";
Value causal_attention(Build& build, Value qkv, int64_t heads, int64_t positions,
                       double dropout = 0);

// dense "query", "key" and "value" of the input, attention, dense "out"; with rotary positions if
// asked for. `context`, if given, supplies keys and values (cross attention). `mask`, if given, is
// [batch, keys] of i32 or f32, 0 at keys that must not be attended to; tokens whose padding is 0
// can be used directly.
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
// Position `index` of x: [batch, width]. Throws if there is none.
Value take_position(Value x, int64_t index);

}  // namespace artel::nn
