// Every rule of the reference: present, right by central differences, and equal to what graphs and
// compiled programs compute.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "artel/graph/ops/catalogue.h"
#include "artel/tensor/quantised.h"
#include "tests/reference/interpreter.h"
#include "tests/unit/reference/cases.h"

namespace artel::reference {
namespace {

using tests::Harness;

TEST(Reference, HasARuleForEveryOp) {
  const auto sorted = [](std::vector<std::string> names) {
    return std::set<std::string>(names.begin(), names.end());
  };
  const std::set<std::string> forward = sorted(forward_rules()),
                              backward = sorted(gradient_rules());
  for (const OpDefinition& op : builtin_ops()) {
    EXPECT_TRUE(forward.contains(op.name)) << op.name << " has no forward rule";
    EXPECT_EQ(backward.contains(op.name), static_cast<bool>(op.gradient))
        << op.name << ": a gradient rule in the graph or the reference, but not in both";
  }
}

// A scalar function of a use that weights every element differently.
Value loss_of(const Use& use, Graph& graph, const std::vector<Value>& parameters) {
  const Value y = use.function(graph, parameters);
  return y.shape().rank() == 0 ? y : tests::probe(y);
}

// One use of an op, computed by the reference.
struct Computed {
  Graph graph;
  std::vector<ValueId> parameters;
  Leaves leaves;

  Computed(const Use& use, tests::Range range, Random& random) {
    std::vector<Value> handles;
    for (size_t i = 0; i < use.shapes.size(); ++i)
      handles.push_back(graph.parameter("p" + std::to_string(i), use.shapes[i]));
    graph.set_output("loss", loss_of(use, graph, handles));
    for (const Value& handle : handles) parameters.push_back(handle.id());
    for (const ValueId id : parameters) {
      Array value = zeros(graph.type(id).shape);
      for (double& x : value.data) x = random.uniform(range.low, range.high);
      leaves[graph.value(id).name] = value;
    }
    for (const ValueId id : graph.of_kind(ValueKind::state))
      leaves[graph.value(id).name] = zeros(graph.type(id).shape);
  }

  double loss() const { return run(graph, leaves)[graph.output_id("loss")].data[0]; }
  // The scale for rounding errors of the loss: the magnitudes of what its last op, mostly a sum,
  // reads.
  double loss_size() const {
    const Node& last = graph.node(graph.value(graph.output_id("loss")).producer);
    double size = 1;
    const Array terms = run(graph, leaves)[last.inputs[0]];
    for (const double term : terms.data) size += std::abs(term);
    return size;
  }
  std::vector<Array> gradient() const {
    return gradients(graph, run(graph, leaves), graph.output_id("loss"), parameters);
  }
};

double largest(const std::vector<double>& values) {
  double result = 0;
  for (const double v : values) result = std::max(result, std::abs(v));
  return result;
}

class EveryOp : public ::testing::TestWithParam<Case> {
 protected:
  // Calls body(use, random) for some uses of the op.
  template <typename Body>
  void for_each_use(int count, const Body& body) {
    for (int seed = 0; seed < count; ++seed) {
      Random random{static_cast<uint64_t>(seed), hash_name(GetParam().name)};
      const Use use = GetParam().draw(random);
      std::string shapes;
      for (const Shape& shape : use.shapes) shapes += to_string(shape) + " ";
      SCOPED_TRACE("seed " + std::to_string(seed) + ": " + shapes);
      body(use, random);
      if (HasFatalFailure()) return;
    }
  }
};

TEST_P(EveryOp, GradientIsThatOfCentralDifferences) {
  if (GetParam().large) return;
  for_each_use(6, [&](const Use& use, Random& random) {
    Computed at(use, GetParam().range, random);
    const std::vector<Array> gradient = at.gradient();
    for (size_t p = 0; p < use.shapes.size(); ++p) {
      std::vector<double>& values = at.leaves["p" + std::to_string(p)].data;
      const double tolerance = 1e-6 * (1 + largest(gradient[p].data));
      const size_t stride = std::max<size_t>(1, values.size() / 20);
      for (size_t i = 0; i < values.size(); i += stride) {
        constexpr double kStep = 1e-5;
        const double base = values[i];
        values[i] = base + kStep;
        const double above = at.loss();
        values[i] = base - kStep;
        const double below = at.loss();
        values[i] = base;
        ASSERT_NEAR(gradient[p].data[i], (above - below) / (2 * kStep), tolerance)
            << "p" << p << "[" << i << "]";
      }
    }
  });
}

void expect_close(const Array& got, const Array& expected, double tolerance, const char* what) {
  ASSERT_EQ(got.shape, expected.shape) << what;
  const double scale = 1 + largest(expected.data);
  for (size_t i = 0; i < expected.data.size(); ++i)
    ASSERT_NEAR(got.data[i], expected.data[i], tolerance * scale) << what << "[" << i << "]";
}

// The compiled graph (fused and differentiated by the graph's rules) in double, and the program
// that runs it, with one thread and with two.
TEST_P(EveryOp, GraphAndProgramAgree) {
  for_each_use(GetParam().large ? 4 : 12, [&](const Use& use, Random& random) {
    const Computed expected(use, GetParam().range, random);
    const std::vector<Array> gradient = expected.gradient();
    const double loss = expected.loss(), size = expected.loss_size();
    for (const int threads : {1, 2}) {
      Harness harness(
          use.shapes, [&](Graph& g, const auto& p) { return loss_of(use, g, p); }, GetParam().range,
          1, threads);
      for (const auto& [name, value] : expected.leaves) harness.set(name, to_tensor(value));
      const Graph& compiled = harness.program().graph();
      const std::vector<Array> values = run(compiled, expected.leaves);
      expect_close(values[compiled.output_id("loss")], {{}, {loss}}, 1e-10, "loss of the graph");
      const double computed = harness.loss();
      ASSERT_NEAR(computed, loss, 2e-6 * size);
      for (size_t p = 0; p < use.shapes.size(); ++p) {
        const std::string name = "p" + std::to_string(p);
        const Tensor tensor = harness.gradient(name);
        const Array by_program = tensor.elements() ? from_tensor(tensor) : zeros(use.shapes[p]);
        Array by_graph = zeros(use.shapes[p]);
        for (const GradientOf& g : compiled.gradients())
          if (compiled.value(g.parameter).name == name) by_graph = values[g.gradient];
        expect_close(by_graph, gradient[p], 1e-10, ("graph's gradient of " + name).c_str());
        expect_close(by_program, gradient[p], 2e-5, ("program's gradient of " + name).c_str());
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, EveryOp, ::testing::ValuesIn(all_cases()),
                         [](const auto& info) { return info.param.name; });

// Makes sure that no op lacks the comparison above.
TEST(Reference, EveryOpIsAmongTheCases) {
  // These have no gradient, and tests of their own.
  std::set<std::string> seen = {"cached_attention", "quantised_dense", "quantised_embedding"};
  for (const Case& c : all_cases())
    for (uint64_t seed = 0; seed < 12; ++seed) {
      Random random{seed, hash_name(c.name)};
      const Use use = c.draw(random);
      const Harness harness(use.shapes,
                            [&](Graph& g, const auto& p) { return loss_of(use, g, p); });
      for (const Node& node : harness.program().graph().nodes()) seen.insert(node.op->name);
    }
  for (const OpDefinition& op : builtin_ops()) EXPECT_TRUE(seen.contains(op.name)) << op.name;
}

// Masks follow seed, step and lane, in dropout and in attention.
TEST(Reference, RandomOpsFollowTheKey) {
  const auto function = [](Graph&, const std::vector<Value>& p) {
    return tests::probe(
        dropout(attention(p[0], {.heads = 2, .causal = true, .dropout = 0.3}), 0.4));
  };
  Harness harness({{2, 7, 24}}, function);
  const Leaves leaves = {{"p0", from_tensor(harness.get("p0"))}};
  const Graph& graph = harness.program().graph();
  std::set<double> losses;
  for (const RandomKey key : {RandomKey{1, 0, 0}, RandomKey{1, 5, 0}, RandomKey{1, 0, 3}}) {
    harness.program().run(harness.frame(), harness.pool(),
                          {.context = {.seed = key.seed, .step = key.step, .lane = key.lane}});
    const double loss = run(graph, leaves, key)[graph.output_id("loss")].data[0];
    EXPECT_NEAR(harness.frame().scalar("loss"), loss, 1e-5);
    losses.insert(loss);
  }
  EXPECT_EQ(losses.size(), 3u);
}

// Two calls: the second reads what the first wrote.
TEST(Reference, CachedAttention) {
  Graph graph;
  const Value qkv = graph.input("qkv", {DType::f32, {1, 3, 3 * 8}});
  const Value places = graph.input("places", {DType::i32, {3}});
  const Value cache = graph.state("cache", {2, 9, 8});
  graph.set_output("y", cached_attention(qkv, cache, places, 2));
  KernelChoices choices;
  const Program program(lower(graph), {}, choices);
  Parameters parameters(program.parameter_entries());
  Frame frame(program, parameters);
  ThreadPool pool(1, limit_library_threads);
  Leaves leaves = {{"cache", zeros({2, 9, 8})}};
  Random random{3};
  for (int32_t first : {0, 3}) {
    Tensor tokens({1, 3, 24});
    for (float& x : tokens.values<float>()) x = random.uniform(-1, 1);
    const Tensor at = Tensor::from<int32_t>({3}, {first, first + 1, first + 2});
    leaves["qkv"] = from_tensor(tokens);
    leaves["places"] = from_tensor(at);
    const std::vector<Array> values = run(graph, leaves);
    leaves["cache"] = values[cache.id()];
    frame.set_input("qkv", tokens);
    frame.set_input("places", at);
    program.run(frame, pool, {});
    expect_close(from_tensor(frame.output("y")), values[graph.output_id("y")], 1e-6, "y");
    expect_close(from_tensor(parameters.get("cache")), leaves["cache"], 1e-7, "cache");
  }
}

TEST(Reference, GroupedCachedAttention) {
  Graph graph;
  const Value qkv = graph.input("qkv", {DType::f32, {1, 3, (4 + 2 * 2) * 8}});
  const Value places = graph.input("places", {DType::i32, {3}});
  const Value cache = graph.state("cache", {2, 5, 2 * 8});
  graph.set_output("y", cached_attention(qkv, cache, places, 4, 2));
  KernelChoices choices;
  const Program program(lower(graph), {}, choices);
  Parameters parameters(program.parameter_entries());
  Frame frame(program, parameters);
  ThreadPool pool(1, limit_library_threads);
  Tensor tokens({1, 3, 64});
  Random random{4};
  for (float& x : tokens.values<float>()) x = random.uniform(-1, 1);
  const Tensor at = Tensor::from<int32_t>({3}, {0, 1, 2});
  const std::vector<Array> values = run(
      graph,
      {{"cache", zeros({2, 5, 16})}, {"qkv", from_tensor(tokens)}, {"places", from_tensor(at)}});
  frame.set_input("qkv", tokens);
  frame.set_input("places", at);
  program.run(frame, pool, {});
  expect_close(from_tensor(frame.output("y")), values[graph.output_id("y")], 1e-6, "y");
}

TEST(Reference, QuantisedMatrices) {
  Random random{5};
  Tensor weight({12, 64}), x({3, 64});
  for (Tensor* each : {&weight, &x})
    for (float& value : each->values<float>()) value = random.uniform(-1, 1);
  const Tensor indices = Tensor::from<int32_t>({2}, {11, 0});
  for (const int bits : {8, 4})
    for (const bool offsets : {true, false}) {
      QuantisedMatrix matrix = quantise_rows(weight, {bits});
      if (!offsets) matrix.offsets = Tensor();
      NamedTensors parts;
      append(parts, "w", matrix);
      Graph graph;
      Leaves leaves;
      std::vector<Value> values;
      for (const NamedTensor& part : parts) {
        values.push_back(graph.parameter(part.name, part.tensor.shape(), part.tensor.dtype()));
        leaves[part.name] = from_tensor(part.tensor);
      }
      const QuantisedValue stored = {values[0], values[1], values.size() > 2 ? values[2] : Value()};
      const Value bias = graph.parameter("bias", {12});
      const Value rows = graph.input("x", {DType::f32, x.shape()});
      const Value places = graph.input("places", {DType::i32, indices.shape()});
      graph.set_output("y", dense(rows, stored, bias));
      graph.set_output("rows", embedding(places, stored));
      KernelChoices choices;
      const Program program(lower(graph), {}, choices);
      Parameters parameters(program.parameter_entries());
      for (const NamedTensor& part : parts) parameters.set(part.name, part.tensor);
      leaves["bias"] = from_tensor(parameters.get("bias"));
      leaves["x"] = from_tensor(x);
      leaves["places"] = from_tensor(indices);
      const std::vector<Array> expected = run(graph, leaves);
      Frame frame(program, parameters);
      ThreadPool pool(1, limit_library_threads);
      frame.set_input("x", x);
      frame.set_input("places", indices);
      program.run(frame, pool, {});
      expect_close(from_tensor(frame.output("y")), expected[graph.output_id("y")], 2e-4, "y");
      expect_close(from_tensor(frame.output("rows")), expected[graph.output_id("rows")], 1e-6,
                   "rows");
    }
}

}  // namespace
}  // namespace artel::reference
