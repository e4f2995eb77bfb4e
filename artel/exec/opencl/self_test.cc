#include "artel/exec/opencl/self_test.h"

#include <algorithm>
#include <cmath>
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
  Value h = conv2d(x, graph.parameter("conv", {8, 3, 3, 3}), graph.parameter("conv_bias", {8}),
                   {.padding = {1, 1}});
  h = relu(batch_norm(h, graph.parameter("scale", {8}), graph.parameter("shift", {8}),
                      graph.state("mean", {8}), graph.state("variance", {8})));
  h = max_pool(h, {.kernel = {2, 2}, .stride = {2, 2}});
  h = dropout(h, 0.2);
  h = dense(flatten(h), graph.parameter("dense", {10, 8 * 16}), graph.parameter("bias", {10}));
  graph.set_output("loss", cross_entropy(h, y));
  return lower(graph, Differentiation{});
}

Graph text_network() {
  Graph graph;
  const Value x = graph.input("x", {DType::i32, {2, 6}});
  const Value y = graph.input("y", {DType::i32, {12}});
  Value h = embedding(x, graph.parameter("table", {11, 16}));
  h = layer_norm(h, graph.parameter("scale", {16}), graph.parameter("shift", {16}));
  const Value qkv = dense(h, graph.parameter("qkv", {48, 16}));
  h = add(h, attention(qkv, {.heads = 2, .causal = true}));
  h = unary("gelu", dense(h, graph.parameter("dense", {16, 16}), graph.parameter("bias", {16})));
  h = reshape(dense(h, graph.parameter("head", {11, 16})), {12, 11});
  graph.set_output("loss", cross_entropy(h, y));
  return lower(graph, Differentiation{});
}

// Returns the loss followed by all gradients for random inputs.
std::vector<float> results_on(Device& device, Graph graph) {
  KernelChoices choices;
  const Program program(std::move(graph), {.device = &device}, choices);
  const auto random = [](const std::string& name, const TensorType& type) {
    Tensor value(type.shape, type.dtype);
    Random numbers{hash_name(name)};
    if (type.dtype == DType::i32)
      for (int32_t& v : value.values<int32_t>()) v = static_cast<int32_t>(numbers.below(10));
    else
      for (float& v : value.values<float>()) v = numbers.uniform(-0.5f, 0.5f);
    return value;
  };
  Parameters parameters(program.parameter_entries());
  for (const ParameterEntry& entry : parameters.entries())
    parameters.set(entry.name, random(entry.name, {DType::f32, entry.shape}));
  Frame frame(program, parameters);
  for (const ValueId id : program.graph().of_kind(ValueKind::input)) {
    const ValueData& input = program.graph().value(id);
    frame.set_input(input.name, random(input.name, input.type));
  }
  ThreadPool pool(1, limit_library_threads);
  Program::RunOptions options;
  options.context = {.seed = 1, .step = 2, .lane = 3};
  program.run(frame, pool, options);
  std::vector<float> results = {frame.scalar("loss")};
  for (const GradientSlot& slot : program.plan().gradients) {
    const std::span<float> values =
        frame.gradients().subspan(slot.offset / sizeof(float), slot.bytes / sizeof(float));
    results.insert(results.end(), values.begin(), values.end());
  }
  return results;
}

std::string compare_networks(Device& device, const std::string& kind, Graph (*make)()) {
  constexpr float kTolerance = 1e-4f;
  const std::vector<float> expected = results_on(cpu(), make()), got = results_on(device, make());
  float scale = 0;
  for (const float value : expected) scale = std::max(scale, std::fabs(value));
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(std::fabs(got[i] - expected[i]) <= kTolerance * scale))
      return fmt::format("a network of {}: result {} of {} is {}, expected {}", kind, i,
                         expected.size(), got[i], expected[i]);
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
