// Element-wise ops of users run like ours.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "tests/unit/exec/graph_harness.h"

namespace artel {
namespace {

// scale * x / (1 + |x|) + y, where y may be broadcast; its gradient is made of our ops.
void register_bend() {
  static const bool once = [] {
    register_op({.name = "bend",
                 .infer = [](const InferContext& context) -> std::vector<TensorType> {
                   context.check_inputs(2, 2);
                   return {context.type(0)};
                 },
                 .gradient = [](GradientContext& context) -> std::vector<Value> {
                   const Value x = context.input(0);
                   const Value width = add_scalar(unary("abs", x), 1);
                   const double scale = context.attributes().number("scale");
                   return {mul_scalar(div(context.gradient(), mul(width, width)), scale),
                           sum(context.gradient(), {0})};
                 }});
    register_kernel({.op = "bend", .elements = [](const ElementRun& run) {
                       const auto scale = static_cast<float>(run.attributes.number("scale"));
                       EXPECT_EQ(run.in[2], nullptr);
                       for (int64_t i = 0; i < run.n; ++i) {
                         const float x = run.in[0][i];
                         run.out[i] = scale * x / (1 + std::abs(x)) + run.in[1][i];
                       }
                     }});
    return true;
  }();
  EXPECT_TRUE(once);
}

Value bend(Value x, Value y, double scale) {
  return x.graph().add_one("bend", {x, y}, {{"scale", scale}});
}

// In the middle of a chain it is one kernel with it.
TEST(CustomOp, FusesWithItsNeighbours) {
  register_bend();
  Graph graph;
  const Value x = graph.parameter("x", {37, 5}), y = graph.parameter("y", {5});
  graph.set_output("z", unary("tanh", bend(unary("square", x), y, 2)));
  KernelChoices choices;
  const Program program(lower(graph), {}, choices);
  EXPECT_EQ(program.plan().kernels.size(), 1u);
  Parameters parameters(program.parameter_entries());
  Tensor values({37, 5}), shift({5});
  Random random{2};
  for (float& v : values.values<float>()) v = random.normal();
  for (float& v : shift.values<float>()) v = random.normal();
  parameters.set("x", values);
  parameters.set("y", shift);
  for (const int threads : {1, 3}) {
    ThreadPool pool(threads);
    Frame frame(program, parameters);
    program.run(frame, pool, {});
    const Tensor z = frame.output("z");
    for (size_t i = 0; i < 37 * 5; ++i) {
      const float s = values.values<float>()[i] * values.values<float>()[i];
      EXPECT_NEAR(z.values<float>()[i],
                  std::tanh(2 * s / (1 + std::abs(s)) + shift.values<float>()[i % 5]), 1e-6)
          << i;
    }
  }
}

// Or it would read beyond its inputs.
TEST(CustomOp, InputsAreBroadcastToTheOutput) {
  register_bend();
  for (const Shape& shape : {Shape{4}, Shape{2, 5}, Shape{1, 3, 5}}) {
    Graph graph;
    const Value x = graph.parameter("x", {3, 5}), y = graph.parameter("y", shape);
    graph.set_output("z", bend(x, y, 2));
    KernelChoices choices;
    try {
      const Program program(lower(graph), {}, choices);
      ADD_FAILURE() << to_string(shape) << " was accepted";
    } catch (const Error& error) {
      EXPECT_NE(
          std::string(error.what())
              .find(fmt::format("bend: got an input {} for the output [3, 5]", to_string(shape))),
          std::string::npos)
          << error.what();
    }
  }
}

TEST(CustomOp, IsDifferentiated) {
  register_bend();
  tests::Harness harness({{7, 3}, {3}}, [](Graph&, const std::vector<Value>& p) {
    return sum(unary("square", bend(p[0], p[1], 0.5)));
  });
  harness.loss();
  const Tensor gradient = harness.gradient("p0");
  Tensor x = harness.get("p0");
  for (const size_t i : {size_t{0}, size_t{11}, size_t{20}}) {
    const float base = x.values<float>()[i];
    constexpr float kStep = 1e-2f;
    const auto loss_at = [&](float value) {
      x.values<float>()[i] = value;
      harness.set("p0", x);
      return double{harness.loss()};
    };
    const double slope = (loss_at(base + kStep) - loss_at(base - kStep)) / (2 * kStep);
    loss_at(base);
    EXPECT_NEAR(gradient.values<float>()[i], slope, 2e-3) << i;
  }
}

TEST(CustomOp, NeedsOneKernel) {
  EXPECT_THROW(register_kernel({.op = "nothing"}), Error);
  EXPECT_THROW(register_kernel({.op = "both",
                                .make = [](const KernelRequest&) { return Kernel{}; },
                                .elements = [](const ElementRun&) {}}),
               Error);
}

}  // namespace
}  // namespace artel
