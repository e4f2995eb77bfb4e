#include "artel/exec/opencl/self_test.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "artel/base/random.h"
#include "artel/base/time.h"
#include "artel/exec/libraries.h"
#include "artel/exec/opencl/ops/copies.h"
#include "artel/exec/opencl/ops/products.h"
#include "artel/exec/program.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/lower.h"

namespace artel::opencl {
namespace {

Graph picture_network() {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3, 9, 9}});
  const Value y = graph.input("y", {DType::i32, {4}});
  Value h = conv2d(x, graph.parameter("conv", {8, 3, 3, 3}), {}, {.padding = {1, 1}});
  h = relu(batch_norm(h, graph.parameter("scale", {8}), graph.parameter("shift", {8}),
                      graph.state("mean", {8}), graph.state("variance", {8})));
  h = conv2d(h, graph.parameter("depthwise", {8, 1, 3, 3}), graph.parameter("depthwise_bias", {8}),
             {.padding = {1, 1}, .groups = 8});
  h = conv_transpose2d(h, graph.parameter("transposed", {8, 6, 2, 2}),
                       graph.parameter("transposed_bias", {6}), {.stride = {2, 2}});
  h = max_pool(h, {.kernel = {2, 2}, .stride = {2, 2}});
  h = average_pool(h, {.kernel = {3, 3}, .stride = {3, 3}});
  h = dropout(h, 0.2);
  h = dense(flatten(h), graph.parameter("dense", {10, 6 * 9}), graph.parameter("bias", {10}));
  graph.set_output("loss", cross_entropy(h, y));
  return lower(graph, Differentiation{});
}

// The cosines, then the sines, of the angles of each position.
Tensor rotary_angles(int64_t positions, int64_t width) {
  Tensor table({positions, width});
  for (int64_t i = 0; i < positions; ++i)
    for (int64_t k = 0; k < width / 2; ++k) {
      const double angle = static_cast<double>(i) / std::pow(100.0, static_cast<double>(k));
      const auto at = static_cast<size_t>(i * width + k);
      table.values<float>()[at] = static_cast<float>(std::cos(angle));
      table.values<float>()[at + static_cast<size_t>(width / 2)] =
          static_cast<float>(std::sin(angle));
    }
  return table;
}

// A network whose products have more rows than a tile.
Graph text_network() {
  constexpr int64_t kTexts = 3, kPositions = 30, kWidth = 16, kHeads = 2, kTokens = 11;
  Graph graph;
  const Value x = graph.input("x", {DType::i32, {kTexts, kPositions}});
  const Value y = graph.input("y", {DType::i32, {kTexts * kPositions}});
  const auto parameter = [&](const char* name, const Shape& shape) {
    return graph.parameter(name, shape);
  };
  Value h = embedding(x, parameter("table", {kTokens, kWidth}));
  h = layer_norm(h, parameter("scale", {kWidth}), parameter("shift", {kWidth}));
  const Value qkv = dense(h, parameter("qkv", {3 * kWidth, kWidth}));
  const Value angles = graph.constant("angles", rotary_angles(kPositions, kWidth / kHeads));
  const Value q = rotary(slice(qkv, 2, 0, kWidth), angles, kHeads);
  const Value k = rotary(slice(qkv, 2, kWidth, 2 * kWidth), angles, kHeads);
  h = add(
      h, attention(q, k, slice(qkv, 2, 2 * kWidth, 3 * kWidth), {.heads = kHeads, .causal = true}));
  h = rms_norm(h, parameter("rms", {kWidth}));
  h = unary("gelu", dense(h, parameter("dense", {kWidth, kWidth}), parameter("bias", {kWidth})));
  h = lstm(dense(h, parameter("lstm_in", {4 * kWidth, kWidth})),
           parameter("lstm", {4 * kWidth, kWidth}), {.bias = parameter("lstm_bias", {4 * kWidth})});
  h = gru(dense(h, parameter("gru_in", {3 * kWidth, kWidth})),
          parameter("gru", {3 * kWidth, kWidth}), {.bias = parameter("gru_bias", {3 * kWidth})});
  h = reshape(dense(h, parameter("head", {kTokens, kWidth})), {kTexts * kPositions, kTokens});
  graph.set_output("loss", cross_entropy(h, y));
  return lower(graph, Differentiation{});
}

struct NamedResult {
  std::string name;
  std::vector<float> values;

  float largest() const {
    float most = 0;
    for (const float value : values) most = std::max(most, std::fabs(value));
    return most;
  }
};

// A network with random parameters and inputs.
class TestedNetwork {
 public:
  TestedNetwork(Device& device, Graph graph)
      : program_(std::move(graph), {.device = &device}, choices_),
        parameters_(program_.parameter_entries()) {
    for (const ParameterEntry& entry : parameters_.entries())
      parameters_.set(entry.name, random(entry.name, {DType::f32, entry.shape}));
  }

  // The loss and all gradients.
  std::vector<NamedResult> results() {
    Frame frame(program_, parameters_);
    for (const ValueId id : program_.graph().of_kind(ValueKind::input)) {
      const ValueData& input = program_.graph().value(id);
      frame.set_input(input.name, random(input.name, input.type));
    }
    ThreadPool pool(1, limit_library_threads);
    Program::RunOptions options;
    options.context = {.seed = 1, .step = 2, .lane = 3};
    program_.run(frame, pool, options);
    std::vector<NamedResult> all = {{"the loss", {frame.scalar("loss")}}};
    for (const GradientSlot& slot : program_.plan().gradients) {
      const std::span<float> values =
          frame.gradients().subspan(slot.offset / sizeof(float), slot.bytes / sizeof(float));
      all.push_back({fmt::format("the gradient of '{}'", program_.graph().value(slot.value).name),
                     {values.begin(), values.end()}});
    }
    return all;
  }

 private:
  static Tensor random(const std::string& name, const TensorType& type) {
    Tensor value(type.shape, type.dtype);
    Random numbers{hash_name(name)};
    if (type.dtype == DType::i32)
      for (int32_t& v : value.values<int32_t>()) v = static_cast<int32_t>(numbers.below(10));
    else
      for (float& v : value.values<float>()) v = numbers.uniform(-0.5f, 0.5f);
    return value;
  }

  KernelChoices choices_;
  Program program_;
  Parameters parameters_;
};

// Each result has its own tolerance, so that a wrong small gradient is found among large ones. A
// small part of the tolerance covers the rounding of the whole network.
std::string compare_results(const std::vector<NamedResult>& got,
                            const std::vector<NamedResult>& expected) {
  constexpr float kOfResult = 1e-4f, kOfNetwork = 1e-6f;
  float largest = 0;
  for (const NamedResult& result : expected) largest = std::max(largest, result.largest());
  for (size_t i = 0; i < expected.size(); ++i) {
    const float tolerance = kOfResult * expected[i].largest() + kOfNetwork * largest;
    for (size_t k = 0; k < expected[i].values.size(); ++k)
      if (!(std::fabs(got[i].values[k] - expected[i].values[k]) <= tolerance))
        return fmt::format("element {} of {} is {}, expected {}", k, expected[i].name,
                           got[i].values[k], expected[i].values[k]);
  }
  return {};
}

bool same_results(const std::vector<NamedResult>& a, const std::vector<NamedResult>& b) {
  return std::ranges::equal(a, b, [](const NamedResult& x, const NamedResult& y) {
    return std::memcmp(x.values.data(), y.values.data(), x.values.size() * sizeof(float)) == 0;
  });
}

std::string compare_networks(Device& device, const std::string& kind, Graph (*make)()) {
  TestedNetwork here(cpu(), make()), there(device, make());
  const std::vector<NamedResult> got = there.results();
  const std::string difference = compare_results(got, here.results());
  if (!difference.empty()) return fmt::format("a network of {}: {}", kind, difference);
  if (!same_results(got, there.results()))
    return fmt::format("a network of {}: a second run gives other bits", kind);
  return {};
}

template <typename Run>
double least_seconds(OpenClDevice& device, const Run& run) {
  constexpr int kRepeats = 4;
  double least = std::numeric_limits<double>::infinity();
  for (int i = 0; i < kRepeats; ++i) {
    const Clock::time_point begin = Clock::now();
    run();
    device.finish();
    least = std::min(least, seconds_between(begin, Clock::now()));
  }
  return least;
}

}  // namespace

std::string self_test(OpenClDevice& device) {
  try {
    std::string problem = compare_networks(device, "pictures", picture_network);
    return problem.empty() ? compare_networks(device, "text", text_network) : problem;
  } catch (const Error& error) {
    return error.what();
  }
}

double measure_products(OpenClDevice& device) {
  const int64_t n = device.description().is_cpu ? 512 : 2048;
  const auto bytes = static_cast<size_t>(n * n) * sizeof(float);
  const Memory a = device.allocate(bytes), b = device.allocate(bytes), c = device.allocate(bytes);
  const auto floats = [](const Memory& memory) {
    return reinterpret_cast<float*>(memory.address());
  };
  const Products products(device);
  const double seconds = least_seconds(device, [&] {
    products.run({.m = n,
                  .n = n,
                  .k = n,
                  .a = floats(a),
                  .lda = n,
                  .b = floats(b),
                  .ldb = n,
                  .c = floats(c),
                  .ldc = n});
  });
  return 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / seconds;
}

double measure_bandwidth(OpenClDevice& device) {
  constexpr int64_t kFloats = int64_t{16} << 20;
  const Memory from = device.allocate(kFloats * sizeof(float));
  const Memory to = device.allocate(kFloats * sizeof(float));
  const StridedCopy copy(device, {kFloats}, {1}, {1});
  const double seconds = least_seconds(device, [&] {
    copy.run(reinterpret_cast<const float*>(from.address()),
             reinterpret_cast<float*>(to.address()));
  });
  return 2.0 * kFloats * sizeof(float) / seconds;
}

}  // namespace artel::opencl
