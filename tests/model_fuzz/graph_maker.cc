#include "tests/model_fuzz/graph_maker.h"

#include <fmt/format.h>

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"

namespace artel::model_fuzz {
namespace {

// A graph under construction. Each recipe has its own random numbers, so leaving one out changes
// the others as little as possible.
class Maker {
 public:
  Maker(Graph& graph, bool large)
      : graph_(graph), large_(large), most_elements_(large ? 1 << 17 : 1 << 12) {}

  void make(uint64_t recipe) {
    random_ = Random{recipe};
    std::vector<Value> made;
    try {
      made = step();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
      return;
    }
    for (const Value& value : made)
      if (value.type().dtype == DType::f32 && value.shape().elements() <= most_elements_ &&
          value.shape().elements() > 0)
        pool_.push_back(value);
  }

  // A scalar made of the last values, so all of them matter.
  Value loss() {
    Value total;
    for (size_t i = pool_.size() > 4 ? pool_.size() - 4 : 0; i < pool_.size(); ++i) {
      const Value part = mean(unary("square", unary("tanh", pool_[i])));
      total = total ? add(total, part) : part;
    }
    return total;
  }

  bool empty() const { return pool_.empty(); }

 private:
  int64_t between(int64_t least, int64_t most) {
    return least + static_cast<int64_t>(random_.below(static_cast<uint64_t>(most - least + 1)));
  }
  int64_t extent() {
    constexpr int64_t kExtents[] = {1, 1, 2, 3, 3, 4, 5, 7, 8, 9, 15, 16, 17, 33};
    constexpr int64_t kLargeExtents[] = {1, 2, 3, 16, 33, 64, 65, 127, 256};
    return large_ ? kLargeExtents[random_.below(std::size(kLargeExtents))]
                  : kExtents[random_.below(std::size(kExtents))];
  }
  bool coin() { return random_.below(2) == 0; }

  Value parameter(Shape shape) {
    require(shape.elements() <= most_elements_, ErrorKind::shape, "too large");
    const std::vector<ValueId> known = graph_.of_kind(ValueKind::parameter);
    if (!known.empty() && random_.below(3) == 0)  // tied weights
      if (const ValueId id = known[random_.below(known.size())]; graph_.type(id).shape == shape)
        return graph_.handle(id);
    return graph_.parameter(fmt::format("p{}", known.size()), std::move(shape));
  }
  Shape shape_of_rank(int rank) {
    std::vector<int64_t> extents;
    for (int i = 0; i < rank; ++i) extents.push_back(extent());
    return Shape(std::move(extents));
  }
  Value any() {
    if (pool_.empty() || random_.below(6) == 0)
      return parameter(shape_of_rank(static_cast<int>(between(0, 5))));
    return pool_[random_.below(pool_.size())];
  }
  // A recent value of this rank if there is one, otherwise a new parameter.
  Value of_rank(int rank) {
    for (int tries = 0; tries < 4 && !pool_.empty(); ++tries)
      if (const Value value = pool_[random_.below(pool_.size())]; value.shape().rank() == rank)
        return value;
    return parameter(shape_of_rank(rank));
  }
  // The same, or with some extents 1 or leading axes missing, as broadcasting allows.
  Value partner(Value x) {
    for (int tries = 0; tries < 3; ++tries)
      if (const Value value = any(); value.shape() == x.shape()) return value;
    std::vector<int64_t> extents = x.shape().extents();
    for (int64_t& e : extents)
      if (random_.below(4) == 0) e = 1;
    if (!extents.empty() && random_.below(4) == 0)
      extents.erase(extents.begin(), extents.begin() + between(0, std::ssize(extents)));
    return parameter(Shape(std::move(extents)));
  }
  Value positive(Value x) { return add_scalar(unary("softplus", x), 0.2); }
  Value small(Value x) { return unary("tanh", x); }
  std::array<int64_t, 2> two(int64_t least, int64_t most) {
    return {between(least, most), between(least, most)};
  }

  Value constant(const Tensor& tensor) {
    return graph_.constant(fmt::format("i{}", graph_.values().size()), tensor);
  }
  // Values that no parameter has to do with, for ops without a gradient.
  Value numbers(Shape shape) {
    require(shape.elements() <= most_elements_, ErrorKind::shape, "too large");
    Tensor tensor(std::move(shape));
    for (float& value : tensor.values<float>()) value = random_.normal();
    return constant(tensor);
  }
  // Some are ignored, but not the first.
  Value labels(const Shape& shape, int64_t classes) {
    Tensor tensor(shape, DType::i32);
    for (int32_t& label : tensor.values<int32_t>())
      label = random_.below(5) == 0
                  ? -100
                  : static_cast<int32_t>(random_.below(static_cast<uint64_t>(classes)));
    if (shape.elements() > 0) tensor.values<int32_t>()[0] = 0;
    return constant(tensor);
  }

  // A cross entropy with any kind of target.
  Value classified() {
    const Value scores = of_rank(2);
    const int64_t rows = scores.shape()[0], classes = scores.shape()[1];
    const CrossEntropyOptions options = {.label_smoothing = coin() ? 0.1 : 0};
    Value weights;
    if (coin()) {
      Tensor tensor({classes});
      for (float& weight : tensor.values<float>()) weight = random_.uniform(0.2f, 2);
      weights = constant(tensor);
    }
    return cross_entropy(scores,
                         coin() ? labels({rows}, classes) : softmax(numbers({rows, classes})),
                         weights, options);
  }

  // The other losses.
  Value compared() {
    const Value a = of_rank(static_cast<int>(between(1, 3)));
    const Value b = parameter(a.shape());
    switch (random_.below(8)) {
      case 0:
        return mean_squared_error(a, b);
      case 1:
        return l1_loss(a, b);
      case 2:
        return smooth_l1_loss(a, b, coin() ? 1 : 0.3);
      case 3:
        return binary_cross_entropy(a, unary("sigmoid", b));
      case 4:
        return kl_divergence(log_softmax(a), softmax(b));
      case 5:
        return cosine_similarity(a, b);
      case 6: {
        const Value x = of_rank(2);
        Tensor similar({x.shape()[0]});
        for (float& target : similar.values<float>()) target = coin() ? 1 : -1;
        return cosine_embedding_loss(x, parameter(x.shape()), constant(similar), coin() ? 0 : 0.2);
      }
      default: {
        const Value x = of_rank(2);
        return contrastive_loss(x, parameter(x.shape()), coin() ? 0.1 : 1);
      }
    }
  }

  std::vector<Value> step() {
    static constexpr const char* kUnary[] = {"neg",  "abs",     "square", "sin",      "cos",
                                             "tanh", "sigmoid", "relu",   "silu",     "softplus",
                                             "erf",  "sign",    "gelu",   "gelu_tanh"};
    switch (random_.below(33)) {
      case 0:
      case 1:
        return {unary(kUnary[random_.below(std::size(kUnary))], any())};
      case 2: {
        static constexpr const char* kPositive[] = {"sqrt", "rsqrt", "log", "reciprocal"};
        return {unary(kPositive[random_.below(4)], positive(any()))};
      }
      case 3:
        return {unary("exp", small(any()))};
      case 4:
      case 5: {
        const Value x = any(), y = partner(x);
        switch (random_.below(8)) {
          case 0:
            return {sub(x, y)};
          case 1:
            return {mul(x, y)};
          case 2:
            return {div(x, positive(y))};
          case 3:
            return {maximum(x, y)};
          case 4:
            return {minimum(x, y)};
          case 5:
            return {pow(positive(x), small(y))};
          case 6:
            return {sub(y, x)};
          default:
            return {add(x, y)};
        }
      }
      case 6: {
        if (random_.below(3) == 0)
          return {unary("sin", argmax(of_rank(static_cast<int>(between(2, 4)))))};
        const Value x = any(), y = partner(x), condition = greater(x, y);
        return {select(coin() ? condition : equal(x, x), x, y)};
      }
      case 7: {
        const Value x = any();
        const double c = random_.uniform(-1, 1);
        switch (random_.below(6)) {
          case 0:
            return {add_scalar(x, c)};
          case 1:
            return {mul_scalar(x, c)};
          case 2:
            return {pow_scalar(positive(x), 2 * c)};
          case 3:
            return {clamp_min(x, c)};
          case 4:
            return {clamp_max(x, c)};
          default:
            return {leaky_relu(x, c)};
        }
      }
      case 8:
      case 9: {  // a product of matrices
        const Value a = of_rank(static_cast<int>(between(2, 4)));
        const MatmulOptions options = {coin(), coin()};
        const int rank = a.shape().rank();
        const int64_t k = a.shape()[options.transpose_a ? rank - 2 : rank - 1], n = extent();
        std::vector<int64_t> extents;
        if (rank > 2 && coin())
          extents.assign(a.shape().extents().begin(), a.shape().extents().end() - 2);
        extents.insert(extents.end(), {options.transpose_b ? n : k, options.transpose_b ? k : n});
        return {matmul(a, parameter(Shape(extents)), options)};
      }
      case 10: {
        const Value x = of_rank(static_cast<int>(between(2, 5)));
        const int64_t in = x.shape().back(), out = extent();
        const bool in_out = coin();
        const Value y = dense(x, parameter(in_out ? Shape{in, out} : Shape{out, in}),
                              coin() ? parameter({out}) : Value(),
                              in_out ? WeightOrder::in_out : WeightOrder::out_in);
        return {coin() ? y : unary(coin() ? "relu" : "gelu", y)};
      }
      case 11:
      case 12: {
        const Value x = of_rank(4);
        const ConvOptions options = {.stride = two(1, 3),
                                     .padding = two(0, 2),
                                     .dilation = two(1, 2),
                                     .groups = coin() ? 1 : between(1, 3)};
        const int64_t out = extent() * options.groups, in = x.shape()[1] / options.groups;
        const Value y = conv2d(x, parameter({out, in, between(1, 3), between(1, 3)}),
                               coin() ? parameter({out}) : Value(), options);
        return {coin() ? y : relu(y)};
      }
      case 13: {
        const Value x = of_rank(4);
        const ConvOptions options = {.stride = two(1, 3),
                                     .padding = two(0, 2),
                                     .dilation = two(1, 3),
                                     .groups = coin() ? 1 : between(1, 3),
                                     .output_padding = two(0, 2)};
        const int64_t out = extent();
        return {conv_transpose2d(x, parameter({x.shape()[1], out, between(1, 3), between(1, 3)}),
                                 coin() ? parameter({out * options.groups}) : Value(), options)};
      }
      case 14: {
        const PoolOptions options = {.kernel = two(1, 3),
                                     .stride = two(1, 3),
                                     .padding = two(0, 1),
                                     .count_padding = coin()};
        return {coin() ? max_pool(of_rank(4), options) : average_pool(of_rank(4), options)};
      }
      case 15:
        return {coin() ? adaptive_average_pool(of_rank(4), between(1, 5), between(1, 5))
                       : adaptive_max_pool(of_rank(4), between(1, 5), between(1, 5))};
      case 16: {
        const Value x = of_rank(static_cast<int>(between(2, 4)));
        const Shape channels = {x.shape()[1]};
        const auto state = [&](const char* name) {
          return graph_.state(fmt::format("{}{}", name, graph_.nodes().size()), channels);
        };
        if (coin())
          return {batch_norm_inference(x, parameter(channels), parameter(channels),
                                       parameter(channels), positive(parameter(channels)))};
        Value y = batch_norm(x, parameter(channels), parameter(channels), state("m"), state("v"),
                             {.epsilon = 0.1});
        if (coin()) y = add(y, partner(y));
        return {coin() ? relu(y) : y};
      }
      case 17: {
        const Value x = of_rank(static_cast<int>(between(1, 4)));
        const Shape width = {x.shape().back()};
        return {coin() ? layer_norm(x, parameter(width), parameter(width), 0.1)
                       : rms_norm(x, parameter(width), 0.1)};
      }
      case 18:
        return {dropout(any(), 0.4)};
      case 19:
        return {coin() ? softmax(any()) : log_softmax(any())};
      case 20: {
        const Shape shape = shape_of_rank(static_cast<int>(between(1, 3)));
        require(shape.elements() <= 256, ErrorKind::shape, "too large");
        const int64_t rows = extent();
        Tensor indices(shape, DType::i32);
        for (int32_t& i : indices.values<int32_t>())
          i = static_cast<int32_t>(random_.below(static_cast<uint64_t>(rows)));
        const Value x = constant(indices);
        Value y = embedding(x, parameter({rows, extent()}));
        if (coin()) y = add(y, mul_scalar(sum(x), 0.01));  // integers as numbers
        return {y};
      }
      case 21: {
        const int64_t heads = between(1, 3), width = heads * between(1, 6);
        const int64_t batch = between(1, 3), queries = between(1, 9), keys = between(1, 9);
        AttentionOptions options = {.heads = heads, .causal = coin(), .dropout = coin() ? 0.3 : 0};
        const bool packed = coin();
        if (coin()) {
          Tensor mask({batch, packed ? queries : keys}, DType::i32);
          for (int32_t& m : mask.values<int32_t>()) m = static_cast<int32_t>(random_.below(3));
          for (int64_t row = 0; row < batch; ++row)
            mask.values<int32_t>()[static_cast<size_t>(row * mask.shape()[1])] = 1;
          options.mask = constant(mask);
        }
        if (packed) return {attention(parameter({batch, queries, 3 * width}), options)};
        if (options.causal && keys < queries) options.causal = false;
        return {attention(parameter({batch, queries, width}), parameter({batch, keys, width}),
                          parameter({batch, keys, width}), options)};
      }
      case 22: {
        const Value x = any();
        std::vector<int64_t> extents = x.shape().extents();
        if (extents.size() > 1 && coin()) {
          extents[1] *= extents[0];
          extents.erase(extents.begin());
        } else {
          extents.insert(extents.begin() + between(0, std::ssize(extents)), 1);
        }
        return {extents.size() > 5 ? x : reshape(x, Shape(extents))};
      }
      case 23: {
        const Value x = any();
        std::vector<int64_t> permutation(static_cast<size_t>(x.shape().rank()));
        for (size_t i = 0; i < permutation.size(); ++i) permutation[i] = static_cast<int64_t>(i);
        for (size_t i = permutation.size(); i > 1; --i)
          std::swap(permutation[i - 1], permutation[random_.below(i)]);
        return {transpose(x, permutation)};
      }
      case 24: {
        const Value x = of_rank(static_cast<int>(between(1, 5)));
        const int64_t axis = between(0, x.shape().rank() - 1);
        Shape other = x.shape();
        other[static_cast<int>(axis)] = extent();
        return {concat({x, parameter(other), coin() ? x : parameter(other)}, axis)};
      }
      case 25: {
        const Value x = of_rank(static_cast<int>(between(1, 5)));
        const int64_t axis = between(0, x.shape().rank() - 1);
        const int64_t size = x.shape()[static_cast<int>(axis)], begin = between(0, size - 1);
        if (coin()) return {slice(x, axis, begin, between(begin + 1, size))};
        return {pad(x, axis, between(0, 2), between(0, 2))};
      }
      case 26: {
        const Value x = of_rank(static_cast<int>(between(1, 5)));
        std::vector<int64_t> axes;
        for (int axis = 0; axis < x.shape().rank(); ++axis)
          if (coin()) axes.push_back(axis);
        return {reduce(static_cast<Reduction>(random_.below(4)), x, axes, coin())};
      }
      case 27:
        return {classified()};
      case 28:
        return {compared()};
      case 29: {
        const Value scores = numbers(shape_of_rank(static_cast<int>(between(1, 3))));
        std::vector<int64_t> rows = scores.shape().extents();
        const int64_t classes = rows.back();
        rows.pop_back();
        return {count_top(scores, labels(Shape(rows), classes), between(1, 5))};
      }
      case 30: {
        const int64_t heads = between(1, 3), width = heads * between(1, 6);
        const int64_t tokens = between(1, 5), before = between(0, 4);
        Tensor places({tokens}, DType::i32);
        for (int64_t i = 0; i < tokens; ++i)
          places.values<int32_t>()[static_cast<size_t>(i)] = static_cast<int32_t>(before + i);
        const Value cache = graph_.state(fmt::format("cache{}", graph_.nodes().size()),
                                         {2, before + tokens + between(0, 3), width});
        return {cached_attention(numbers({1, tokens, 3 * width}), cache, constant(places), heads)};
      }
      case 31: {
        const bool is_lstm = coin();
        const int64_t batch = between(1, 5), positions = between(1, 6);
        const int64_t units = large_ ? extent() : between(1, 9), gates = (is_lstm ? 4 : 3) * units;
        RecurrenceOptions options = {.reverse = coin()};
        if (coin()) options.bias = parameter({gates});
        if (coin()) {
          Tensor mask({batch, positions}, DType::i32);
          for (int32_t& m : mask.values<int32_t>()) m = static_cast<int32_t>(random_.below(3));
          options.mask = constant(mask);
        }
        const Value projected = parameter({batch, positions, gates});
        const Value weight = parameter({gates, units});
        return {is_lstm ? lstm(projected, weight, options) : gru(projected, weight, options)};
      }
      default: {
        const Value x = any();
        std::vector<int64_t> extents = x.shape().extents();
        for (int64_t& e : extents)
          if (e == 1 && coin()) e = between(1, 4);
        if (extents.size() < 5 && coin()) extents.insert(extents.begin(), between(1, 4));
        return {broadcast_to(x, Shape(extents))};
      }
    }
  }

  Graph& graph_;
  const bool large_;
  const int64_t most_elements_;
  Random random_{0};
  std::vector<Value> pool_;
};

Graph built(const std::vector<uint64_t>& recipes, bool large) {
  Graph graph;
  Maker maker(graph, large);
  for (const uint64_t recipe : recipes) maker.make(recipe);
  if (maker.empty()) maker.make(1);
  if (!maker.empty()) graph.set_output("loss", maker.loss());
  return graph;
}

}  // namespace

Graph make_graph(const std::vector<uint64_t>& recipes, bool large) {
  if (!large) return built(recipes, false);
  Graph graph = built(recipes, true);
  constexpr double kMostFlops = 1.6e7;  // what the reference takes a fraction of a second for
  double flops = 0;
  for (const Node& node : graph.nodes()) flops += node_flops(graph, node);
  return flops < kMostFlops ? std::move(graph) : built(recipes, false);
}

}  // namespace artel::model_fuzz
