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
// Over the last axis.
Value layer_norm(Value x, Value scale, Value shift, double epsilon = 1e-5);
Value rms_norm(Value x, Value scale, double epsilon = 1e-5);

Value dropout(Value x, double probability);
Value softmax(Value x);      // over the last axis
Value log_softmax(Value x);  // over the last axis
// indices (i32) of any shape into table [rows, width]: [..., width].
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
// Causal attention of new tokens, qkv [1, tokens, 3 * width], to themselves and to all tokens
// before them. `cache`, a state [2, positions, width], holds keys and values; those of the new
// tokens are written to the rows from `places[0]` on (i32 [tokens]), and the rows up to there are
// read. For inference: it has no gradient.
Value cached_attention(Value qkv, Value cache, Value places, int64_t heads);

// Recurrent cells, with PyTorch's equations and order of gates, over sequences that begin with a
// state of zeros: states [batch, positions, units]. `projected` [batch, positions, gates * units]
// is what the inputs contribute to the gates (a dense layer), `weight` [gates * units, units] and
// the bias make what the state before contributes. Gates: input, forget, cell, output of an LSTM
// (Hochreiter and Schmidhuber, 1997); reset, update, candidate of a GRU (Cho et al., 2014).
struct RecurrenceOptions {
  Value bias = {};       // [gates * units]
  Value mask = {};       // [batch, positions] of i32 or f32: the state stays as it is where it is 0
  bool reverse = false;  // from the last position to the first
};
Value lstm(Value projected, Value weight, const RecurrenceOptions& options = {});
Value gru(Value projected, Value weight, const RecurrenceOptions& options = {});

Value reshape(Value x, const Shape& shape);  // one extent may be -1
Value flatten(Value x);                      // [batch, the rest]
Value transpose(Value x, std::vector<int64_t> permutation);
Value concat(std::vector<Value> parts, int64_t axis);
Value slice(Value x, int64_t axis, int64_t begin, int64_t end);
// Zeros before and after along an axis: what undoes a slice.
Value pad(Value x, int64_t axis, int64_t before, int64_t after);
Value broadcast_to(Value x, const Shape& shape);

enum class Reduction { sum, mean, max, min };
// Over the given axes (all if empty).
Value reduce(Reduction reduction, Value x, std::vector<int64_t> axes = {}, bool keep = false);
Value sum(Value x, std::vector<int64_t> axes = {}, bool keep = false);
Value mean(Value x, std::vector<int64_t> axes = {}, bool keep = false);

// Of scores [..., classes] the class with the largest, the first of them: i32 [...].
Value argmax(Value scores);
// f32 [2]: for how many rows of scores [..., classes] the label (i32, one for each row) is among
// the k largest, the first of equal ones before the others; and how many labels there are, without
// those that cross entropy ignores.
Value count_top(Value scores, Value labels, int64_t k = 1);

// Losses: scalars, the mean over the batch. Targets have the shape of the prediction; [batch] will
// do for [batch, 1].
struct CrossEntropyOptions {
  double label_smoothing = 0;
  int64_t ignore_index = -100;
};
// logits [rows, classes], labels i32 [rows] or target probabilities f32 [rows, classes]; `weights`
// [classes] or empty. As in PyTorch, the mean over labels is weighted by their classes, and over
// probabilities it is that of the rows.
Value cross_entropy(Value logits, Value labels, Value weights = {},
                    CrossEntropyOptions options = {});
// A mean over rows that do not count equally, in two parts that can be added over batches: the mean
// over all rows of weight times number, and the mean weight. The first divided by the second is the
// weighted mean. Without a weight, all rows count 1.
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
