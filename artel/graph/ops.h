// The ops as functions: `relu(conv2d(x, w, b, {.padding = {1, 1}}))`. Each adds one node (a few
// small ones where said so) to the graph of its arguments. Shapes follow PyTorch: images are
// [batch, channels, height, width], dense weights [out, in], convolution weights
// [out, in / groups, height, width].
//
//   artel::Graph graph;
//   const artel::Value x = graph.input("x", {artel::DType::f32, {8, 3, 32, 32}});
//   const artel::Value weight = graph.parameter("weight", {16, 3, 3, 3});
//   const artel::Value y = artel::relu(artel::conv2d(x, weight, {}, {.padding = {1, 1}}));
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "artel/graph/graph.h"

namespace artel {

// Element-wise; operands are broadcast as in NumPy.
Value add(Value a, Value b);
Value sub(Value a, Value b);
Value mul(Value a, Value b);
Value div(Value a, Value b);
Value maximum(Value a, Value b);
Value minimum(Value a, Value b);
Value pow(Value a, Value b);
Value greater(Value a, Value b);  // 1 where a > b, else 0
Value equal(Value a, Value b);
Value select(Value condition, Value a, Value b);  // a where condition is not 0, else b

Value add_scalar(Value x, double c);
Value mul_scalar(Value x, double c);
Value pow_scalar(Value x, double c);
Value clamp_min(Value x, double low);
Value clamp_max(Value x, double high);

// neg, abs, square, sqrt, rsqrt, exp, log, sin, cos, tanh, sigmoid, relu, silu, softplus, erf,
// sign, reciprocal, gelu (exact), gelu_tanh.
Value unary(std::string_view op, Value x);
Value relu(Value x);
Value leaky_relu(Value x, double slope = 0.01);

Value operator+(Value a, Value b);
Value operator-(Value a, Value b);
Value operator*(Value a, Value b);
Value operator/(Value a, Value b);

// a [..., m, k] times b [..., k, n]; the leading extents are equal, or b has rank 2.
struct MatmulOptions {
  bool transpose_a = false;
  bool transpose_b = false;
};
Value matmul(Value a, Value b, MatmulOptions options = {});
// x [..., in] times weight [out, in] transposed (or weight [in, out]), plus bias [out] if given.
enum class WeightOrder { out_in, in_out };
Value dense(Value x, Value weight, Value bias = {}, WeightOrder order = WeightOrder::out_in);

// A quantised matrix (tensor/quantised.h). The ops that use it have no gradient. `dense` rounds x
// to 8 bits, with one scale per block of 32 elements.
struct QuantisedValue {
  Value codes, scales;
  Value offsets = {};
};
Value dense(Value x, const QuantisedValue& matrix, Value bias = {});
Value embedding(Value indices, const QuantisedValue& table);

struct ConvOptions {
  std::array<int64_t, 2> stride = {1, 1};
  std::array<int64_t, 2> padding = {0, 0};
  std::array<int64_t, 2> dilation = {1, 1};
  int64_t groups = 1;
  std::array<int64_t, 2> output_padding = {0, 0};  // of the transposed convolution only
};
Value conv2d(Value x, Value weight, Value bias = {}, ConvOptions options = {});
// weight [in, out / groups, height, width]
Value conv_transpose2d(Value x, Value weight, Value bias = {}, ConvOptions options = {});

struct PoolOptions {
  std::array<int64_t, 2> kernel = {2, 2};
  std::array<int64_t, 2> stride = {2, 2};
  std::array<int64_t, 2> padding = {0, 0};
  bool count_padding = true;  // of the average
};
Value max_pool(Value x, PoolOptions options);
Value average_pool(Value x, PoolOptions options);
Value adaptive_average_pool(Value x, int64_t height, int64_t width);
Value adaptive_max_pool(Value x, int64_t height, int64_t width);

// Normalises each channel (axis 1) by the statistics of this batch; `running_mean` and
// `running_variance` are states that track them.
struct BatchNormOptions {
  double epsilon = 1e-5;
  double momentum = 0.1;
};
Value batch_norm(Value x, Value scale, Value shift, Value running_mean, Value running_variance,
                 BatchNormOptions options = {});
Value batch_norm_inference(Value x, Value scale, Value shift, Value mean, Value variance,
                           double epsilon = 1e-5);
// These normalise over the last axis.
Value layer_norm(Value x, Value scale, Value shift, double epsilon = 1e-5);
Value rms_norm(Value x, Value scale, double epsilon = 1e-5);

Value dropout(Value x, double probability);
Value softmax(Value x);      // over the last axis
Value log_softmax(Value x);  // over the last axis
// Looks up i32 indices of any shape in table [rows, width]. The result is [..., width].
Value embedding(Value indices, Value table);

// softmax(q k^T / sqrt(width / heads)) v for each head; q [batch, queries, width], k and v
// [batch, keys, width], heads side by side in the width.
struct AttentionOptions {
  int64_t heads = 1;
  bool causal = false;  // query i sees the keys up to i + keys - queries
  Value mask = {};      // [batch, keys] of i32 or f32: 0 where no query may look, as at padding
  double dropout = 0;   // share of the softmax's outputs that is dropped; 0 outside training
};
Value attention(Value q, Value k, Value v, const AttentionOptions& options);
// The same for qkv [batch, positions, 3 * width] with q, k and v side by side.
Value attention(Value qkv, const AttentionOptions& options);
// Causal attention of new tokens, qkv [1, tokens, 3 * width], to themselves and to all earlier
// tokens. The state `cache` [2, positions, width] holds keys and values. Those of the new tokens
// are written to the rows from `places[0]` on (i32 [tokens]). Has no gradient.
//
// `key_heads` is the number of key and value heads; 0 means `heads`. If there are fewer than
// `heads`, neighbouring heads share keys and values, qkv is [1, tokens, width + 2 * key_width], and
// the cache is [2, positions, key_width].
Value cached_attention(Value qkv, Value cache, Value places, int64_t heads, int64_t key_heads = 0);

// Rotary positions (Su et al., 2021) for x [batch, positions, width] with heads side by side. In a
// head of width w, elements i and i + w / 2 form a pair that is rotated. Row p of `table`
// [positions or more, w] contains the cosines, then the sines, of the w / 2 angles of position p.
// With `places` (i32 [positions]), position i of x uses row places[i].
Value rotary(Value x, Value table, int64_t heads, Value places = {});

// Recurrent layers with PyTorch's equations and gate order, starting from a zero state. The result
// has the states [batch, positions, units]. `projected` [batch, positions, gates * units] is the
// contribution of the inputs to the gates (a dense layer). `weight` [gates * units, units] and the
// bias compute the contribution of the previous state. The gates are input, forget, cell, output
// for an LSTM (Hochreiter and Schmidhuber, 1997), and reset, update, candidate for a GRU (Cho et
// al., 2014).
struct RecurrenceOptions {
  Value bias = {};       // [gates * units]
  Value mask = {};       // [batch, positions] of i32 or f32; the state is unchanged where it is 0
  bool reverse = false;  // from the last position to the first
};
Value lstm(Value projected, Value weight, const RecurrenceOptions& options = {});
Value gru(Value projected, Value weight, const RecurrenceOptions& options = {});

Value reshape(Value x, const Shape& shape);  // one extent may be -1
Value flatten(Value x);                      // [batch, the rest]
Value transpose(Value x, std::vector<int64_t> permutation);
Value concat(std::vector<Value> parts, int64_t axis);
Value slice(Value x, int64_t axis, int64_t begin, int64_t end);
// Adds zeros before and after along an axis. The gradient of slice.
Value pad(Value x, int64_t axis, int64_t before, int64_t after);
Value broadcast_to(Value x, const Shape& shape);

enum class Reduction { sum, mean, max, min };
// Reduces the given axes, or all axes if empty.
Value reduce(Reduction reduction, Value x, std::vector<int64_t> axes = {}, bool keep = false);
Value sum(Value x, std::vector<int64_t> axes = {}, bool keep = false);
Value mean(Value x, std::vector<int64_t> axes = {}, bool keep = false);

// Index of the largest score in scores [..., classes], as i32 [...]. Ties go to the lowest index.
Value argmax(Value scores);
// Top-k accuracy as f32 [2]: the number of rows of scores [..., classes] whose label (i32, one per
// row) is among the k largest scores, and the number of labels, without ignored ones. Ties go to
// the lowest index.
Value count_top(Value scores, Value labels, int64_t k = 1);

// Losses are scalars, the mean over the batch. Targets have the shape of the prediction. [batch] is
// accepted for [batch, 1].
struct CrossEntropyOptions {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
};
// logits [rows, classes]; labels i32 [rows] or probabilities f32 [rows, classes]; `weights`
// [classes] or empty. As in PyTorch, the mean over labels is weighted by class, and the mean over
// probabilities is not.
Value cross_entropy(Value logits, Value labels, Value weights = {},
                    CrossEntropyOptions options = {});
// A weighted mean over rows, as two parts that can be added over batches: the mean of weight times
// value, and the mean weight. Their quotient is the weighted mean. Without `weight`, all weights
// are 1.
struct WeightedMean {
  WeightedMean(Value mean) : weighted(mean) {}  // NOLINT: a plain mean is one
  WeightedMean(Value weighted, Value weight) : weighted(weighted), weight(weight) {}

  Value weighted, weight;
};
// The cross entropy in these parts. The weight of an ignored label is 0.
WeightedMean weighted_cross_entropy(Value logits, Value labels, Value weights = {},
                                    CrossEntropyOptions options = {});
Value mean_squared_error(Value prediction, Value target);
Value l1_loss(Value prediction, Value target);
Value smooth_l1_loss(Value prediction, Value target, double beta = 1);
Value binary_cross_entropy(Value logits, Value target);
// KL(target || exp(log_probabilities)), summed over the last axis, mean over the batch.
Value kl_divergence(Value log_probabilities, Value target);
Value cosine_similarity(Value a, Value b, double epsilon = 1e-8);  // over the last axis
// target 1 or -1 per row: 1 - cos for similar pairs, max(0, cos - margin) for others.
Value cosine_embedding_loss(Value a, Value b, Value target, double margin = 0);
// Row i of a belongs to row i of b (InfoNCE, both directions, as in contrastive learning).
Value contrastive_loss(Value a, Value b, double temperature = 0.1);

}  // namespace artel
