#include "tests/model_fuzz/random_graph.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/exec/libraries.h"
#include "artel/exec/program.h"
#include "artel/graph/differentiate.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/fuse_forward.h"
#include "artel/graph/passes/recompute.h"
#include "tests/model_fuzz/compare.h"
#include "tests/reference/interpreter.h"

namespace artel::model_fuzz {
namespace {

constexpr int64_t kMostElements = 1 << 12;

// A graph under construction. Each recipe has random numbers of its own, so that leaving one out
// changes as little as possible of the others.
class Maker {
 public:
  explicit Maker(Graph& graph) : graph_(graph) {}

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
      if (value.type().dtype == DType::f32 && value.shape().elements() <= kMostElements &&
          value.shape().elements() > 0)
        pool_.push_back(value);
  }

  // A scalar made of the last values, so that all of them matter.
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
    return kExtents[random_.below(std::size(kExtents))];
  }
  bool coin() { return random_.below(2) == 0; }

  Value parameter(Shape shape) {
    require(shape.elements() <= kMostElements, ErrorKind::shape, "too large");
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
  // A value of this rank, if there is one nearby; else a new parameter.
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

  std::vector<Value> step() {
    static constexpr const char* kUnary[] = {"neg",  "abs",     "square", "sin",      "cos",
                                             "tanh", "sigmoid", "relu",   "silu",     "softplus",
                                             "erf",  "sign",    "gelu",   "gelu_tanh"};
    switch (random_.below(28)) {
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
        const Value x = graph_.constant(fmt::format("i{}", graph_.values().size()), indices);
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
          options.mask = graph_.constant(fmt::format("i{}", graph_.values().size()), mask);
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
  Random random_{0};
  std::vector<Value> pool_;
};

Graph build(const std::vector<uint64_t>& recipes) {
  Graph graph;
  Maker maker(graph);
  for (const uint64_t recipe : recipes) maker.make(recipe);
  if (maker.empty()) maker.make(1);
  if (!maker.empty()) graph.set_output("loss", maker.loss());
  return graph;
}

reference::Leaves leaves_of(const Graph& graph, uint64_t seed) {
  reference::Leaves leaves;
  for (const ValueKind kind : {ValueKind::parameter, ValueKind::state})
    for (const ValueId id : graph.of_kind(kind)) {
      const ValueData& value = graph.value(id);
      Random random{seed, hash_name(value.name)};
      reference::Array array = {value.type.shape, {}};
      for (int64_t i = 0; i < value.type.shape.elements(); ++i)
        array.data.push_back(random.normal());
      leaves[value.name] = std::move(array);
    }
  return leaves;
}

struct Result {
  double loss = 0;
  std::vector<reference::Array> gradients;  // of the parameters, in their order
};

Result expected_result(const Graph& graph, uint64_t seed, const reference::Noise& noise = {}) {
  const std::vector<reference::Array> values =
      reference::run(graph, leaves_of(graph, seed), {seed, 1, 0}, noise);
  const ValueId loss = graph.output_id("loss");
  return {values[loss].data[0],
          reference::gradients(graph, values, loss, graph.of_kind(ValueKind::parameter),
                               {seed, 1, 0}, noise)};
}

struct Computed {
  Result result;
  std::vector<float> bits;
};

Computed computed_result(const Graph& plain, uint64_t seed, int threads) {
  Graph graph = fuse_forward(plain);
  std::vector<Value> parameters;
  for (const ValueId id : graph.of_kind(ValueKind::parameter))
    parameters.push_back(graph.handle(id));
  const std::vector<Value> gradients = differentiate(graph.output("loss"), parameters);
  for (size_t i = 0; i < parameters.size(); ++i)
    if (gradients[i]) graph.set_gradient(parameters[i], gradients[i]);
  KernelChoices choices;
  const Program program(recompute_norms(prune(graph)), {.threads = threads}, choices);
  check_plan(program.graph(), program.plan());
  Parameters memory(program.parameter_entries());
  const reference::Leaves leaves = leaves_of(plain, seed);
  for (const ParameterEntry& entry : memory.entries())
    memory.set(entry.name, reference::to_tensor(leaves.at(entry.name)));
  artel::Lane lane(program, memory);
  ThreadPool pool(threads, limit_library_threads);
  program.run(lane, pool, {.context = {seed, 1, 0}, .check_memory = true});
  Computed computed;
  computed.result.loss = lane.scalar("loss");
  computed.bits.push_back(lane.scalar("loss"));
  for (const ValueId id : plain.of_kind(ValueKind::parameter)) {
    const ParameterEntry& entry = memory.entry(plain.value(id).name);
    Tensor gradient(entry.shape);
    for (const GradientSlot& slot : program.plan().gradients)
      if (program.graph().value(slot.value).name == entry.name && !slot.is_state)
        convert_layout(pool, entry.shape, DType::f32,
                       reinterpret_cast<const std::byte*>(lane.gradients().data()) + slot.offset,
                       entry.layout, gradient.raw(), Layout::row_major());
    computed.bits.insert(computed.bits.end(), gradient.values<float>().begin(),
                         gradient.values<float>().end());
    computed.result.gradients.push_back(reference::from_tensor(gradient));
  }
  return computed;
}

std::optional<std::string> compare(const Graph& graph, uint64_t seed) {
  const Result expected = expected_result(graph, seed);
  double scale = 0;
  for (const reference::Array& gradient : expected.gradients) {
    scale = std::max(scale, largest(gradient));
    for (const double value : gradient.data)
      if (!std::isfinite(value)) return std::nullopt;
  }
  if (!std::isfinite(expected.loss)) return std::nullopt;
  const Computed found = computed_result(graph, seed, 1);
  const std::vector<ValueId> parameters = graph.of_kind(ValueKind::parameter);
  std::vector<Result> noisy;
  const auto sway = [&](auto&& difference) {
    while (noisy.size() < kNoisyRuns)
      noisy.push_back(expected_result(graph, seed, {kNoise, seed + noisy.size()}));
    double most = 0;
    for (const Result& result : noisy) most = std::max(most, difference(result));
    return most;
  };
  const double loss_off = std::abs(found.result.loss - expected.loss);
  const double loss_allowed = kRounding * std::max(1e-3, std::abs(expected.loss));
  const auto loss_sway = [&](const Result& noisy) { return std::abs(noisy.loss - expected.loss); };
  if (!(loss_off <= loss_allowed) && !(loss_off <= loss_allowed + kSway * sway(loss_sway)))
    return fmt::format("the loss is {:.7g}, expected {:.7g}", found.result.loss, expected.loss);
  for (size_t i = 0; i < parameters.size(); ++i) {
    const reference::Array& gradient = expected.gradients[i];
    const double off = distance(found.result.gradients[i], gradient);
    const double allowed = kRounding * std::max(largest(gradient), 1e-2 * scale) + kCancelled;
    const auto own_sway = [&](const Result& noisy) {
      return distance(noisy.gradients[i], gradient);
    };
    if (off <= allowed || off <= allowed + kSway * sway(own_sway)) continue;
    if (sway(own_sway) > kLost * largest(gradient) + kCancelled) continue;
    return fmt::format("the gradient of {} is off by {:.3g} of {:.3g}",
                       graph.value(parameters[i]).name, off, largest(gradient));
  }
  for (const int threads : {2, 3}) {
    const Computed other = computed_result(graph, seed, threads);
    if (std::memcmp(other.bits.data(), found.bits.data(), found.bits.size() * sizeof(float)) != 0)
      return fmt::format("{} threads give other bits than one", threads);
  }
  return std::nullopt;
}

std::optional<std::string> wrong_with(const std::vector<uint64_t>& recipes, uint64_t seed) {
  try {
    const Graph graph = build(recipes);
    return graph.has_output("loss") ? compare(graph, seed) : std::nullopt;
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

std::optional<std::string> wrong_graph(uint64_t seed) {
  Random random{seed, hash_name("graph")};
  std::vector<uint64_t> recipes(1 + random.below(10), 0);
  for (uint64_t& recipe : recipes) recipe = random.next_u64();
  std::optional<std::string> wrong = wrong_with(recipes, seed);
  if (!wrong) return std::nullopt;
  for (size_t i = 0; i < recipes.size();) {
    std::vector<uint64_t> fewer = recipes;
    fewer.erase(fewer.begin() + static_cast<long>(i));
    if (const auto still = wrong_with(fewer, seed)) {
      recipes = fewer;
      wrong = still;
    } else {
      ++i;
    }
  }
  return fmt::format("{}\n{}", *wrong, to_string(build(recipes)));
}

}  // namespace artel::model_fuzz
