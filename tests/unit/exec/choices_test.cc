#include "artel/exec/plan/choices.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "tests/support/error_of.h"
#include "tests/unit/exec/graph_harness.h"

namespace artel {
namespace {

TEST(KernelChoices, FixedRuleUnlessTuning) {
  KernelChoices choices;
  int measured = 0;
  const auto seconds = [&](const std::string& name) {
    ++measured;
    return name == "quick" ? 1.0 : 2.0;
  };
  EXPECT_EQ(choices.choose("a", {"usual", "quick"}, "usual", seconds), "usual");
  EXPECT_EQ(measured, 0);
  choices.tune = true;
  EXPECT_EQ(choices.choose("a", {"usual", "quick"}, "usual", seconds), "quick");
  EXPECT_EQ(measured, 2);
  EXPECT_EQ(choices.choose("a", {"usual", "quick"}, "usual", seconds), "quick");
  EXPECT_EQ(measured, 2) << "a recorded choice is not measured again";
}

TEST(KernelChoices, SurviveTheWayThroughAFile) {
  KernelChoices choices;
  choices.exact_convolutions = true;
  choices.bf16 = true;
  choices.chosen = {{"convolution 3x3", "winograd4"}, {"matmul 1x2x3", "packed"}};
  const KernelChoices read = parse_choices(to_string(choices));
  EXPECT_EQ(read.chosen, choices.chosen);
  EXPECT_TRUE(read.exact_convolutions);
  EXPECT_TRUE(read.bf16);
}

TEST(KernelChoices, SaysWhatIsWrong) {
  try {
    parse_choices("exact_convolutions = 0\nnonsense\n");
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "[choices] line 2: got 'nonsense', expected 'shape = algorithm'");
  }
  KernelChoices choices;
  choices.chosen = {{"a", "gone"}};
  try {
    choices.choose("a", {"x", "y"}, "x", nullptr);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "[choices] 'a' asks for 'gone', which cannot run it; expected one of x, y");
  }
}

Graph convolution_and_product() {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 16, 8, 8}});
  const Value y = conv2d(x, graph.parameter("c", {16, 16, 3, 3}), {}, {.padding = {1, 1}});
  graph.set_output("y", dense(flatten(y), graph.parameter("d", {4, 1024})));
  return graph;
}

TEST(KernelChoices, TuningRecordsEveryShapeAndARecordedPlanIsObeyed) {
  KernelChoices choices;
  choices.tune = true;
  const Program tuned(convolution_and_product(), {}, choices);
  EXPECT_EQ(choices.chosen.size(), 2u) << to_string(choices);
  for (auto& [key, algorithm] : choices.chosen)
    algorithm = key.starts_with("convolution") ? "im2col" : "openblas";
  const Program obeying(convolution_and_product(), {}, choices);
  std::vector<std::string> algorithms;
  for (const PlannedKernel& planned : obeying.plan().kernels)
    if (!planned.kernel.algorithm.empty()) algorithms.push_back(planned.kernel.algorithm);
  EXPECT_EQ(algorithms, (std::vector<std::string>{"im2col", "openblas"}));
}

TEST(KernelChoices, ExactConvolutionsForbidWinograd) {
  for (const bool exact : {false, true}) {
    KernelChoices choices;
    choices.exact_convolutions = exact;
    const Program program(convolution_and_product(), {}, choices);
    bool winograd = false;
    for (const PlannedKernel& planned : program.plan().kernels)
      winograd = winograd || planned.kernel.algorithm.starts_with("winograd");
    EXPECT_EQ(winograd, !exact);
  }
}

// A user-defined op: shape rule, gradient rule, and kernel in one place.
TEST(CustomOp, TrainsLikeABuiltInOne) {
  register_op({"cube",
               [](const InferContext& context) -> std::vector<TensorType> {
                 context.check_inputs(1, 1);
                 return {context.type(0)};
               },
               [](GradientContext& context) -> std::vector<Value> {
                 return {mul(context.gradient(), mul_scalar(unary("square", context.input(0)), 3))};
               },
               nullptr});
  register_kernel({"cube", [](const KernelRequest& request) -> Kernel {
                     const int64_t n = request.in(0).elements();
                     return {{}, 0, [n](const KernelRun& run) {
                               for (int64_t i = 0; i < n; ++i)
                                 run.out(0)[i] = run.in(0)[i] * run.in(0)[i] * run.in(0)[i];
                             }};
                   }});
  tests::Harness harness({{5}}, [](Graph& graph, const std::vector<Value>& p) {
    return sum(graph.add_one("cube", {p[0]}));
  });
  harness.set("p0", Tensor::from<float>({5}, {1, 2, -1, 0, 3}));
  EXPECT_FLOAT_EQ(harness.loss(), 1 + 8 - 1 + 27);
  const Tensor gradient = harness.gradient("p0");
  for (int i = 0; i < 5; ++i) {
    const float x = harness.get("p0").values<float>()[i];
    EXPECT_FLOAT_EQ(gradient.values<float>()[i], 3 * x * x);
  }
  EXPECT_THROW(register_op({"cube", nullptr, nullptr, nullptr}), Error);
}

TEST(Program, NamesTheFirstOpThatGivesNaN) {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {2, 2}});
  const Graph::Scope scope(graph, "features.3");
  graph.set_output("y", reduce(Reduction::sum, unary("log", x), {1}));
  KernelChoices choices;
  const Program program(std::move(graph), {}, choices);
  Parameters none(program.parameter_entries());
  Frame frame(program, none);
  ThreadPool pool(1);
  frame.set_input("x", Tensor::from<float>({2, 2}, {1, 2, -1, 3}));
  Program::RunOptions options;
  options.context.step = 12;
  options.check_numbers = true;
  try {
    program.run(frame, pool, options);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::numeric);
    EXPECT_NE(std::string(error.what()).find("[step 12] log of layer 'features.3' produced"),
              std::string::npos)
        << error.what();
  }
}

TEST(Program, RefusesWrongInputs) {
  Graph graph;
  graph.set_output("y", relu(graph.input("image", {DType::f32, {2, 3}})));
  KernelChoices choices;
  const Program program(std::move(graph), {}, choices);
  Parameters none(program.parameter_entries());
  Frame frame(program, none);
  const auto message = [&](const char* name, const Tensor& value) -> std::string {
    return artel::error_of([&] { frame.set_input(name, value); });
  };
  EXPECT_EQ(message("imag", Tensor({2, 3})),
            "the model has no input 'imag'; did you mean 'image'?");
  EXPECT_EQ(message("image", Tensor({3, 2})), "input 'image': got f32[3, 2], expected f32[2, 3]");
}

}  // namespace
}  // namespace artel
