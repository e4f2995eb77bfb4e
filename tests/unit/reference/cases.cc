#include "tests/unit/reference/cases.h"

#include <array>
#include <cmath>
#include <numeric>

#include "artel/graph/ops/limbs.h"
#include "artel/graph/ops/shards.h"

namespace artel::reference {
namespace {

using tests::Range;
using Values = std::vector<Value>;

int64_t between(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

bool coin(Random& random) { return random.below(2) == 1; }

// Odd ones more often than not, some just around the width of a vector.
int64_t extent(Random& random) {
  static constexpr int64_t kExtents[] = {1, 2, 3, 3, 5, 7, 8, 13, 17};
  return kExtents[random.below(std::size(kExtents))];
}

Shape shape_of(Random& random, int rank) {
  std::vector<int64_t> extents;
  for (int axis = 0; axis < rank; ++axis)
    extents.push_back(rank > 2 ? between(random, 1, 5) : extent(random));
  return Shape(extents);
}

// A shape that broadcasts to `shape`.
Shape narrower(Random& random, const Shape& shape) {
  std::vector<int64_t> extents = shape.extents();
  extents.erase(
      extents.begin(),
      extents.begin() + static_cast<int64_t>(random.below(static_cast<uint64_t>(shape.rank()))));
  for (int64_t& e : extents)
    if (coin(random)) e = 1;
  return Shape(extents);
}

Tensor random_tensor(Random& random, const Shape& shape, float low, float high) {
  Tensor tensor(shape);
  for (float& x : tensor.values<float>()) x = random.uniform(low, high);
  return tensor;
}

Tensor random_integers(Random& random, const Shape& shape, int64_t below) {
  Tensor tensor(shape, DType::i32);
  for (int32_t& x : tensor.values<int32_t>())
    x = static_cast<int32_t>(between(random, 0, below - 1));
  return tensor;
}

// `op` of one array of rank 1 to 5.
Case unary_case(std::string op, Range range) {
  return {op,
          [op](Random& random) -> Use {
            return {{shape_of(random, static_cast<int>(between(random, 1, 5)))},
                    [op](Graph&, const Values& p) { return unary(op, p[0]); }};
          },
          range};
}

Case binary_case(std::string op) {
  return {
      op,
      [op](Random& random) -> Use {
        Shape a = shape_of(random, static_cast<int>(between(random, 1, 4)));
        Shape b = narrower(random, a);
        if (coin(random)) std::swap(a, b);
        return {{a, b}, [op](Graph& g, const Values& p) { return g.add_one(op, {p[0], p[1]}); }};
      },
      {0.5f, 2}};
}

// Comparisons have no gradient; what they choose has one.
Use draw_comparisons(Random& random) {
  const Shape shape = shape_of(random, 3), small = narrower(random, shape);
  const Tensor left = random_tensor(random, shape, -1, 1);
  const Tensor right = random_tensor(random, small, -1, 1);
  return {{shape, small}, [=](Graph& g, const Values& p) {
            const Value larger = greater(g.constant("left", left), g.constant("right", right));
            return add(select(larger, mul(p[0], p[0]), p[1]),
                       mul(equal(larger, mul_scalar(larger, 0)), p[0]));
          }};
}

std::vector<Case> elementwise_cases() {
  std::vector<Case> cases;
  for (const auto* op : {"neg", "square", "exp", "sin", "cos", "tanh", "sigmoid", "relu", "silu",
                         "softplus", "erf", "gelu", "gelu_tanh", "abs", "sign"})
    cases.push_back(unary_case(op, {-3, 3}));
  for (const auto* op : {"sqrt", "rsqrt", "log", "reciprocal"})
    cases.push_back(unary_case(op, {0.5f, 3}));
  for (const auto* op : {"add", "sub", "mul", "div", "maximum", "minimum", "pow"})
    cases.push_back(binary_case(op));
  cases.push_back({"scalars", [](Random& random) -> Use {
                     const double c = random.uniform(-1, 1);
                     return {{shape_of(random, 2)}, [c](Graph&, const Values& p) {
                               const Value x = leaky_relu(mul_scalar(add_scalar(p[0], c), 2), 0.2);
                               return add(pow_scalar(add_scalar(unary("square", x), 0.5), 1.5),
                                          mul(clamp_min(p[0], -0.4), clamp_max(p[0], 0.3)));
                             }};
                   }});
  cases.push_back({"comparisons", draw_comparisons});
  return cases;
}

Use draw_matmul(Random& random) {
  const int rank = static_cast<int>(between(random, 2, 4));
  const bool one_matrix = rank > 2 && coin(random);
  const bool ta = !one_matrix && coin(random), tb = coin(random);
  const int64_t m = extent(random), k = extent(random), n = extent(random);
  std::vector<int64_t> a, b;
  for (int axis = 0; axis < rank - 2; ++axis) a.push_back(between(random, 1, 3));
  if (!one_matrix) b = a;
  for (const int64_t e : {ta ? k : m, ta ? m : k}) a.push_back(e);
  for (const int64_t e : {tb ? n : k, tb ? k : n}) b.push_back(e);
  return {{Shape(a), Shape(b)}, [ta, tb](Graph&, const Values& p) {
            return matmul(p[0], p[1], {.transpose_a = ta, .transpose_b = tb});
          }};
}

// Ranks 2 to 5, both orders of the weights, each activation that is fused.
Use draw_dense(Random& random) {
  Shape x = shape_of(random, static_cast<int>(between(random, 2, 5)));
  const int64_t in = extent(random), out = extent(random);
  x[x.rank() - 1] = in;
  const bool in_out = coin(random), bias = coin(random);
  const std::string activation = std::array{"", "relu", "gelu", "gelu_tanh"}[random.below(4)];
  std::vector<Shape> shapes = {x, in_out ? Shape{in, out} : Shape{out, in}};
  if (bias) shapes.push_back({out});
  return {shapes, [=](Graph&, const Values& p) {
            const Value y = dense(p[0], p[1], bias ? p[2] : Value(),
                                  in_out ? WeightOrder::in_out : WeightOrder::out_in);
            return activation.empty() ? y : unary(activation, y);
          }};
}

// A kernel, stride, padding and dilation for each axis, and groups.
struct Geometry {
  ConvOptions options;
  std::array<int64_t, 2> kernel;
  int64_t in, out;  // channels

  explicit Geometry(Random& random) {
    for (int i = 0; i < 2; ++i) {
      kernel[i] = between(random, 1, 4);
      options.stride[i] = between(random, 1, 3);
      options.padding[i] = between(random, 0, 2);
      options.dilation[i] = between(random, 1, 2);
    }
    options.groups = coin(random) ? 1 : between(random, 1, 3);
    in = options.groups * between(random, 1, 5);
    out = options.groups * between(random, 1, 5);
  }

  // The least extent that a convolution may have.
  int64_t least(int i) const {
    return std::max<int64_t>(1, options.dilation[i] * (kernel[i] - 1) + 1 - 2 * options.padding[i]);
  }
};

Use draw_conv(Random& random) {
  const Geometry g(random);
  const bool bias = coin(random), activated = coin(random);
  const Shape x = {between(random, 1, 3), g.in, g.least(0) + between(random, 0, 5),
                   g.least(1) + between(random, 0, 5)};
  std::vector<Shape> shapes = {x, {g.out, g.in / g.options.groups, g.kernel[0], g.kernel[1]}};
  if (bias) shapes.push_back({g.out});
  return {shapes, [=](Graph&, const Values& p) {
            const Value y = conv2d(p[0], p[1], bias ? p[2] : Value(), g.options);
            return activated ? relu(y) : y;
          }};
}

Use draw_transposed(Random& random) {
  Geometry g(random);
  const bool bias = coin(random);
  Shape x = {between(random, 1, 3), g.in, 0, 0};
  for (int i = 0; i < 2; ++i) {
    g.options.padding[i] =
        std::min(g.options.padding[i], g.options.dilation[i] * (g.kernel[i] - 1) / 2);
    g.options.output_padding[i] =
        between(random, 0, std::max(g.options.stride[i], g.options.dilation[i]) - 1);
    x[2 + i] = between(random, 1, 5);
  }
  std::vector<Shape> shapes = {x, {g.in, g.out / g.options.groups, g.kernel[0], g.kernel[1]}};
  if (bias) shapes.push_back({g.out});
  return {shapes, [=](Graph&, const Values& p) {
            return conv_transpose2d(p[0], p[1], bias ? p[2] : Value(), g.options);
          }};
}

Use draw_pool(Random& random, bool maximum) {
  PoolOptions o;
  o.count_padding = coin(random);
  Shape x = {between(random, 1, 3), extent(random), 0, 0};
  for (int i = 0; i < 2; ++i) {
    o.kernel[i] = between(random, 1, 4);
    o.stride[i] = between(random, 1, 4);
    o.padding[i] = between(random, 0, o.kernel[i] / 2);
    x[2 + i] = o.kernel[i] + between(random, 0, 6);
  }
  return {{x}, [=](Graph&, const Values& p) {
            return maximum ? max_pool(p[0], o) : average_pool(p[0], o);
          }};
}

Use draw_adaptive(Random& random, bool maximum) {
  const int64_t height = between(random, 1, 4), width = between(random, 1, 4);
  return {{{between(random, 1, 3), extent(random), between(random, 1, 9), between(random, 1, 9)}},
          [=](Graph&, const Values& p) {
            return maximum ? adaptive_max_pool(p[0], height, width)
                           : adaptive_average_pool(p[0], height, width);
          }};
}

// With or without ReLU, with or without a residual, on images and rows.
Use draw_batch_norm(Random& random) {
  Shape x = shape_of(random, coin(random) ? 2 : 4);
  x[0] = between(random, 4, 6);
  const bool activated = coin(random), residual = coin(random);
  std::vector<Shape> shapes = {x, {x[1]}, {x[1]}};
  if (residual) shapes.push_back(x);
  return {shapes, [=](Graph& g, const Values& p) {
            Value y = batch_norm(p[0], p[1], p[2], g.state("mean", p[1].shape()),
                                 g.state("variance", p[1].shape()));
            if (residual) y = add(y, p[3]);
            return activated ? relu(y) : y;
          }};
}

Use draw_batch_norm_inference(Random& random) {
  const Shape x = shape_of(random, coin(random) ? 2 : 4);
  const bool activated = coin(random);
  const Tensor mean = random_tensor(random, {x[1]}, -1, 1);
  const Tensor variance = random_tensor(random, {x[1]}, 0.5f, 2);
  return {{x, {x[1]}, {x[1]}}, [=](Graph& g, const Values& p) {
            const Value y = batch_norm_inference(p[0], p[1], p[2], g.constant("mean", mean),
                                                 g.constant("variance", variance));
            return activated ? relu(y) : y;
          }};
}

Use draw_row_norm(Random& random, bool rms) {
  Shape x = shape_of(random, static_cast<int>(between(random, 1, 4)));
  const Shape width = {x[x.rank() - 1] = between(random, 3, 20)};
  std::vector<Shape> shapes = {x, width};
  if (!rms) shapes.push_back(width);
  return {shapes, [=](Graph&, const Values& p) {
            return rms ? rms_norm(p[0], p[1]) : layer_norm(p[0], p[1], p[2]);
          }};
}

Use draw_dropout(Random& random) {
  const double probability = random.uniform(0, 0.9f);
  return {{shape_of(random, static_cast<int>(between(random, 1, 5)))},
          [=](Graph&, const Values& p) { return dropout(p[0], probability); }};
}

Use draw_attention(Random& random, bool packed) {
  const int64_t batch = between(random, 1, 3), heads = between(random, 1, 3);
  const int64_t width = heads * extent(random), keys = extent(random);
  const int64_t queries = packed ? keys : extent(random);
  AttentionOptions options = {.heads = heads, .causal = coin(random)};
  if (coin(random)) options.dropout = random.uniform(0.1f, 0.6f);
  const bool masked = coin(random), integer_mask = coin(random);
  const Tensor mask = random_integers(random, {batch, keys}, 2);
  const auto with_mask = [=](Graph& g) {
    AttentionOptions o = options;
    if (masked) o.mask = g.constant("mask", integer_mask ? mask : mask.to(DType::f32));
    return o;
  };
  if (packed)
    return {{{batch, keys, 3 * width}},
            [=](Graph& g, const Values& p) { return attention(p[0], with_mask(g)); }};
  return {{{batch, queries, width}, {batch, keys, width}, {batch, keys, width}},
          [=](Graph& g, const Values& p) { return attention(p[0], p[1], p[2], with_mask(g)); }};
}

Use draw_rotary(Random& random) {
  const int64_t positions = between(random, 1, 9), heads = between(random, 1, 3);
  const int64_t width = 2 * extent(random), rows = positions + between(random, 0, 4);
  const bool with_places = coin(random);
  const Tensor table = random_tensor(random, {rows, width}, -1, 1);
  const Tensor places = random_integers(random, {positions}, rows);
  return {{{between(random, 1, 3), positions, heads * width}}, [=](Graph& g, const Values& p) {
            return rotary(p[0], g.constant("table", table), heads,
                          with_places ? g.constant("places", places) : Value());
          }};
}

Use recurrence(Random& random, bool is_lstm, int64_t batch, int64_t positions, int64_t units) {
  const int64_t gates = (is_lstm ? 4 : 3) * units;
  const bool bias = coin(random), masked = coin(random), reverse = coin(random);
  const Tensor mask = random_integers(random, {batch, positions}, 3);
  std::vector<Shape> shapes = {{batch, positions, gates}, {gates, units}};
  if (bias) shapes.push_back({gates});
  return {shapes, [=](Graph& g, const Values& p) {
            RecurrenceOptions options = {.reverse = reverse};
            if (bias) options.bias = p[2];
            if (masked) options.mask = g.constant("mask", mask);
            return is_lstm ? lstm(p[0], p[1], options) : gru(p[0], p[1], options);
          }};
}

Use draw_recurrence(Random& random, bool is_lstm) {
  const int64_t batch = between(random, 1, 4), positions = between(random, 1, 6);
  return recurrence(random, is_lstm, batch, positions, extent(random));
}

// More samples than go through the positions together, and several panels of weights.
Use draw_large_recurrence(Random& random, bool is_lstm) {
  return recurrence(random, is_lstm, between(random, 150, 300), between(random, 2, 4),
                    between(random, 5, 20));
}

Use draw_embedding(Random& random) {
  const Shape table = shape_of(random, 2);
  const Tensor indices =
      random_integers(random, shape_of(random, static_cast<int>(between(random, 1, 3))), table[0]);
  return {{table}, [=](Graph& g, const Values& p) {
            return embedding(g.constant("indices", indices), p[0]);
          }};
}

Use draw_shapes(Random& random) {
  const int64_t rank = between(random, 2, 5);
  const auto axis = static_cast<int>(random.below(static_cast<uint64_t>(rank)));
  Shape a = shape_of(random, static_cast<int>(rank)), b = a;
  b[axis] = between(random, 1, 5);
  std::vector<int64_t> permutation;
  for (int64_t i = 0; i < rank; ++i)
    permutation.insert(permutation.begin() + between(random, 0, i), i);
  const int64_t begin = between(random, 0, a[axis]);
  const int64_t end = between(random, begin + 1, a[axis] + b[axis]);
  const bool from_end = coin(random);
  return {{a, b}, [=](Graph&, const Values& p) {
            const Value joined = concat({p[0], p[1]}, from_end ? axis - rank : axis);
            const Value part = slice(joined, axis, begin, end);
            const Value moved = transpose(pad(part, axis, 1, 2), permutation);
            return mul(reshape(moved, {-1, moved.shape()[0]}),
                       reshape(unary("square", moved), {-1, moved.shape()[0]}));
          }};
}

Use draw_broadcast(Random& random) {
  const Shape wide = shape_of(random, static_cast<int>(between(random, 1, 4)));
  return {{narrower(random, wide)},
          [=](Graph&, const Values& p) { return broadcast_to(p[0], wide); }};
}

Use draw_reduction(Random& random, Reduction reduction) {
  const Shape x = shape_of(random, static_cast<int>(between(random, 1, 5)));
  std::vector<int64_t> axes;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    if (coin(random)) axes.push_back(coin(random) ? axis : axis - x.rank());
  const bool keep = coin(random);
  return {{x}, [=](Graph&, const Values& p) { return reduce(reduction, p[0], axes, keep); }};
}

// Makes each row add up to 1.
void scale_rows(Tensor& rows) {
  for (int64_t row = 0; row < rows.shape()[0]; ++row) {
    const std::span<float> own = rows.rows(row, row + 1).values<float>();
    const float sum = std::accumulate(own.begin(), own.end(), 0.0f);
    for (float& share : own) share /= sum;
  }
}

Use draw_cross_entropy(Random& random) {
  const int64_t rows = extent(random), classes = between(random, 2, 19);
  const CrossEntropyOptions options = {.label_smoothing = coin(random) ? 0 : 0.2,
                                       .ignore_index = coin(random) ? 0 : -100};
  const bool labels = coin(random), weighted = coin(random);
  Tensor target = labels ? random_integers(random, {rows}, classes)
                         : random_tensor(random, {rows, classes}, 0, 1);
  if (labels) target.values<int32_t>()[0] = 1;  // at least one row counts
  if (!labels) scale_rows(target);
  const Tensor weights = random_tensor(random, {classes}, 0.2f, 2);
  const bool in_parts = coin(random);
  return {{{rows, classes}}, [=](Graph& g, const Values& p) {
            const Value wanted = g.constant("target", target);
            const Value by_class = weighted ? g.constant("weights", weights) : Value();
            if (!in_parts) return cross_entropy(p[0], wanted, by_class, options);
            const WeightedMean loss = weighted_cross_entropy(p[0], wanted, by_class, options);
            return add(loss.weighted, mul(mean(p[0]), loss.weight));
          }};
}

// Answers have no gradient. Few different scores: many are equal.
Use draw_classes(Random& random) {
  const int64_t rows = extent(random), classes = between(random, 1, 19);
  const int64_t k = between(random, 1, 6);
  Tensor scores(Shape{rows, classes});
  for (float& x : scores.values<float>()) x = static_cast<float>(between(random, 0, 5));
  Tensor labels = random_integers(random, {rows}, classes + 1);  // one of them out of range
  if (coin(random)) labels.values<int32_t>()[0] = -100;
  return {{{rows}}, [=](Graph& g, const Values& p) {
            const Value s = g.constant("scores", scores);
            const Value counts = count_top(s, g.constant("labels", labels), k);
            return add(mul(argmax(s), p[0]), mul_scalar(sum(mul(counts, counts)), 0.5));
          }};
}

// Exact sums have no gradient.
Use draw_limbs(Random& random) {
  Tensor x(shape_of(random, 2));
  for (float& v : x.values<float>())
    v = std::ldexp(random.normal(), static_cast<int>(between(random, -20, 20)));
  const bool squares = coin(random);
  return {{{kLimbs}}, [=](Graph& g, const Values& p) {
            return mul(limb_sums(g.constant("x", x), squares), p[0]);
          }};
}

// Ops that connect shards with the whole. Some shards are larger than others.
Use draw_shards(Random& random) {
  const auto shards = static_cast<int>(between(random, 2, 4));
  const auto blocks = static_cast<int>(between(random, 1, 2));
  const ShardPart part = ShardPart::all(shards);
  Shape shape = shape_of(random, 3);
  const auto axis = static_cast<int>(random.below(3));
  shape[axis] = blocks * between(random, shards, 7);
  const Split split = {axis, blocks, shards};
  return {{shape, {}}, [=](Graph& g, const Values& p) {
            std::vector<Value> pieces = shard_slices(p[0], split, part), terms;
            for (Value& piece : pieces) piece = mul(piece, piece);
            const Value whole = shard_gather(pieces, split, shape[axis], part);
            for (const Value& copy : shard_copies(whole, part))
              terms.push_back(mul(unary("tanh", copy), p[1]));
            const Value sum = shard_sum(terms, part);
            return g.add_one("shard_sum", {sum},
                             {{"shards", int64_t{1}}, {"first", int64_t{0}}, {"last", int64_t{1}}});
          }};
}

Use draw_shards_of_classes(Random& random) {
  const auto shards = static_cast<int>(between(random, 2, 4));
  const ShardPart part = ShardPart::all(shards);
  const int64_t rows = extent(random), classes = between(random, shards, 19);
  const int64_t ignored = coin(random) ? 0 : -100, k = between(random, 1, 3);
  const bool over_rows = coin(random);
  Tensor labels = random_integers(random, {rows}, classes);
  labels.values<int32_t>()[0] = 1;  // at least one row counts
  // Few different scores: many are equal. Counts have no gradient.
  Tensor scores(Shape{rows, classes});
  for (float& x : scores.values<float>()) x = static_cast<float>(between(random, 0, 5));
  return {{{rows, classes}}, [=](Graph& g, const Values& p) {
            const Split by_class = {1, 1, shards};
            const std::vector<Value> pieces = shard_slices(p[0], by_class, part);
            const Value target = g.constant("labels", labels);
            const Value counts =
                shard_count_top(shard_slices(g.constant("scores", scores), by_class, part), target,
                                classes, k, ignored, part);
            const WeightedMean loss =
                shard_cross_entropy(pieces, target, classes, ignored, over_rows, part);
            return add(add(loss.weighted, mul(mean(p[0]), loss.weight)),
                       mul_scalar(sum(mul(counts, counts)), 1e-3));
          }};
}

// The losses that are made of other ops.
std::vector<Case> composed_losses() {
  using Loss = Value (*)(Value, Value);
  const std::vector<std::pair<const char*, Loss>> losses = {
      {"mean_squared_error", mean_squared_error},
      {"l1_loss", l1_loss},
      {"smooth_l1_loss", [](Value a, Value b) { return smooth_l1_loss(a, b, 0.3); }},
      {"binary_cross_entropy", binary_cross_entropy},
      {"kl_divergence", [](Value a, Value b) { return kl_divergence(log_softmax(a), softmax(b)); }},
      {"cosine_similarity", [](Value a, Value b) { return cosine_similarity(a, b); }},
      {"cosine_embedding_loss",
       [](Value a, Value b) {
         Tensor target({a.shape()[0]});
         for (int64_t i = 0; i < target.elements(); ++i)
           target.values<float>()[static_cast<size_t>(i)] = i % 2 ? -1.0f : 1.0f;
         return cosine_embedding_loss(a, b, a.graph().constant("target", target), -0.5);
       }},
      {"contrastive_loss", [](Value a, Value b) { return contrastive_loss(a, b, 0.5); }}};
  std::vector<Case> cases;
  for (const auto& [name, loss] : losses)
    cases.push_back(
        {name, [loss = loss](Random& random) -> Use {
           const Shape shape = shape_of(random, 2);
           return {{shape, shape}, [=](Graph&, const Values& p) { return loss(p[0], p[1]); }};
         }});
  return cases;
}

// Sizes at which kernels cut their work into blocks, and one more or less.
int64_t large_extent(Random& random) {
  static constexpr int64_t kExtents[] = {1, 6, 15, 16, 17, 31, 33, 64, 97, 130};
  return kExtents[random.below(std::size(kExtents))];
}

Use draw_large_matmul(Random& random) {
  const bool ta = coin(random), tb = coin(random);
  const int64_t m = large_extent(random), k = large_extent(random), n = large_extent(random);
  return {{ta ? Shape{k, m} : Shape{m, k}, tb ? Shape{n, k} : Shape{k, n}},
          [ta, tb](Graph&, const Values& p) {
            return matmul(p[0], p[1], {.transpose_a = ta, .transpose_b = tb});
          }};
}

// The kernels of networks for images, which have algorithms of their own.
Use draw_large_conv(Random& random) {
  static constexpr int64_t kChannels[] = {1, 3, 8, 15, 16, 17, 32, 33};
  const int64_t in = kChannels[random.below(8)], out = kChannels[random.below(8)];
  const int64_t kernel = std::array{1, 3, 3, 5}[random.below(4)];
  const int64_t stride = between(random, 1, 2), padding = coin(random) ? kernel / 2 : 0;
  const bool activated = coin(random);
  const ConvOptions options = {.stride = {stride, stride}, .padding = {padding, padding}};
  return {{{between(random, 1, 3), in, between(random, 5, 20), between(random, 5, 20)},
           {out, in, kernel, kernel},
           {out}},
          [=](Graph&, const Values& p) {
            const Value y = conv2d(p[0], p[1], p[2], options);
            return activated ? relu(y) : y;
          }};
}

Use draw_large_attention(Random& random) {
  const int64_t heads = between(random, 1, 2), width = heads * extent(random);
  const int64_t positions = between(random, 90, 130);
  const AttentionOptions options = {.heads = heads, .causal = coin(random), .dropout = 0.1};
  return {{{1, positions, 3 * width}},
          [=](Graph&, const Values& p) { return attention(p[0], options); }};
}

// Integers that a layer computes with.
Use draw_integers(Random& random) {
  const int64_t in = extent(random), out = extent(random);
  const Tensor x = random_integers(random, {extent(random), in}, 9);
  return {{{out, in}}, [=](Graph& g, const Values& p) { return dense(g.constant("x", x), p[0]); }};
}

// Many rows: sums are formed in chunks.
Use draw_large_norms(Random& random) {
  const int64_t rows = between(random, 1000, 3000), width = large_extent(random) / 4 + 8;
  return {{{rows, width}, {width}, {width}, {width}, {width}, {width}},
          [](Graph& g, const Values& p) {
            const Value x = batch_norm(p[0], p[1], p[2], g.state("mean", p[1].shape()),
                                       g.state("variance", p[1].shape()));
            return rms_norm(layer_norm(x, p[3], p[4]), p[5]);
          }};
}

Use draw_large_loss(Random& random) {
  const int64_t rows = between(random, 500, 1500), classes = between(random, 2, 40);
  const Tensor labels = random_integers(random, {rows}, classes);
  return {{{rows, classes}}, [=](Graph& g, const Values& p) {
            return add(cross_entropy(p[0], g.constant("labels", labels)),
                       mean(unary("square", p[0])));
          }};
}

}  // namespace

std::vector<Case> all_cases() {
  std::vector<Case> cases = elementwise_cases();
  for (const Case& loss : composed_losses()) cases.push_back(loss);
  const auto add = [&](const char* name, auto draw, auto... settings) {
    cases.push_back({name, [=](Random& random) { return draw(random, settings...); }});
  };
  add("matmul", draw_matmul);
  add("dense", draw_dense);
  add("conv2d", draw_conv);
  add("conv_transpose2d", draw_transposed);
  add("max_pool", draw_pool, true);
  add("average_pool", draw_pool, false);
  add("adaptive_max_pool", draw_adaptive, true);
  add("adaptive_average_pool", draw_adaptive, false);
  add("batch_norm", draw_batch_norm);
  add("batch_norm_inference", draw_batch_norm_inference);
  add("layer_norm", draw_row_norm, false);
  add("rms_norm", draw_row_norm, true);
  add("dropout", draw_dropout);
  add("attention", draw_attention, false);
  add("packed_attention", draw_attention, true);
  add("rotary", draw_rotary);
  add("lstm", draw_recurrence, true);
  add("gru", draw_recurrence, false);
  add("embedding", draw_embedding);
  add("integers", draw_integers);
  add("shapes", draw_shapes);
  add("broadcast_to", draw_broadcast);
  add("reduce_sum", draw_reduction, Reduction::sum);
  add("reduce_mean", draw_reduction, Reduction::mean);
  add("reduce_max", draw_reduction, Reduction::max);
  add("reduce_min", draw_reduction, Reduction::min);
  add("cross_entropy", draw_cross_entropy);
  add("classes", draw_classes);
  add("limb_sums", draw_limbs);
  add("shards", draw_shards);
  add("shards_of_classes", draw_shards_of_classes);
  for (const auto* op : {"softmax", "log_softmax"}) cases.push_back(unary_case(op, {-3, 3}));
  const size_t small = cases.size();
  add("large_matmul", draw_large_matmul);
  add("large_conv2d", draw_large_conv);
  add("large_attention", draw_large_attention);
  add("large_lstm", draw_large_recurrence, true);
  add("large_gru", draw_large_recurrence, false);
  add("large_norms", draw_large_norms);
  add("large_loss", draw_large_loss);
  for (size_t i = small; i < cases.size(); ++i) cases[i].large = true;
  return cases;
}

}  // namespace artel::reference
