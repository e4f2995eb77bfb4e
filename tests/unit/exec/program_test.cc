#include "artel/exec/program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "artel/base/random.h"
#include "artel/exec/libraries.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/ops/shards.h"
#include "artel/graph/passes/lower.h"
#include "artel/graph/passes/recompute.h"

namespace artel {
namespace {

// A convolution with a batch norm and dropout, then two dense layers; images change their layout.
Graph network() {
  Graph graph;
  const Value x = graph.input("x", {DType::f32, {4, 3, 6, 6}});
  const Value y = graph.input("y", {DType::i32, {4}});
  Value h = conv2d(x, graph.parameter("conv", {8, 3, 3, 3}), {}, {.padding = {1, 1}});
  h = relu(batch_norm(h, graph.parameter("scale", {8}), graph.parameter("shift", {8}),
                      graph.state("mean", {8}), graph.state("variance", {8})));
  h = dropout(flatten(h), 0.25);
  h = unary("tanh", dense(h, graph.parameter("w", {16, 8 * 36}), graph.parameter("b", {16})));
  graph.set_output("loss", cross_entropy(dense(h, graph.parameter("v", {5, 16})), y));
  return lower(graph, Differentiation{.weight = "weight"});
}

class Parts : public testing::Test {
 protected:
  Parts() : program_(network(), {}, choices_), parameters_(program_.parameter_entries()) {
    for (const ParameterEntry& entry : parameters_.entries()) {
      Tensor value(entry.shape);
      Random random{hash_name(entry.name)};
      for (float& v : value.values<float>()) v = random.uniform(-0.5f, 0.5f);
      parameters_.set(entry.name, value);
    }
  }

  int kernels() const { return static_cast<int>(program_.plan().kernels.size()); }

  Frame frame(uint64_t seed) { return frame(program_, seed); }
  Frame frame(const Program& program, uint64_t seed) {
    Frame result(program, parameters_);
    Random random{seed};
    Tensor x({4, 3, 6, 6}), y({4}, DType::i32);
    for (float& v : x.values<float>()) v = random.uniform(-1, 1);
    for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(5));
    result.set_input("x", x);
    result.set_input("y", y);
    result.set_input("weight", Tensor::from<float>({}, {0.5f}));
    return result;
  }

  void run(Frame& frame, int64_t lane, KernelRange part, bool check_memory = false,
           std::vector<int>* ran = nullptr) {
    Program::RunOptions options = {
        .context = {7, 3, lane}, .part = part, .check_memory = check_memory};
    if (ran) options.after_kernel = [=](int kernel) { ran->push_back(kernel); };
    program_.run(frame, pool_, options);
  }

  static std::vector<float> bits(Frame& frame) {
    const std::span<const float> gradients = frame.gradients();
    std::vector<float> result(gradients.begin(), gradients.end());
    result.push_back(frame.scalar("loss"));
    return result;
  }

  static void expect_forward_first(const Plan& plan) {
    for (int i = 0; i < static_cast<int>(plan.kernels.size()); ++i)
      EXPECT_EQ(plan.kernels[i].direction == Direction::forward, i < plan.forward_end) << i;
  }

  KernelChoices choices_;
  Program program_;
  Parameters parameters_;
  ThreadPool pool_{1, limit_library_threads};
};

// Frames are run piece by piece, in turns, cut anywhere: each gives the bits of a whole run.
TEST_F(Parts, GiveTheBitsOfAWholeRun) {
  constexpr int kFrames = 3;
  std::vector<std::vector<float>> whole;
  for (int i = 0; i < kFrames; ++i) {
    Frame frame = this->frame(i);
    run(frame, i, {});
    whole.push_back(bits(frame));
  }
  ASSERT_NE(whole[0], whole[1]);
  std::vector<int> all(kernels());
  for (int i = 0; i < kernels(); ++i) all[i] = i;
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    Random random{seed};
    std::vector<Frame> frames;
    for (int i = 0; i < kFrames; ++i) frames.push_back(frame(i));
    std::vector<int> next(kFrames, 0);
    std::vector<std::vector<int>> ran(kFrames);
    while (*std::min_element(next.begin(), next.end()) < kernels()) {
      const auto i = static_cast<int>(random.below(kFrames));
      const int end = std::min(kernels(), next[i] + static_cast<int>(random.below(6)));
      run(frames[i], i, {next[i], end}, seed % 2 == 0, &ran[i]);
      next[i] = end;
    }
    for (int i = 0; i < kFrames; ++i) {
      EXPECT_EQ(ran[i], all);
      EXPECT_EQ(bits(frames[i]), whole[i]) << "frame " << i << ", seed " << seed;
    }
  }
}

TEST_F(Parts, AreCutBetweenForwardAndBackward) {
  const Plan& plan = program_.plan();
  ASSERT_GT(plan.forward_end, 0);
  ASSERT_LT(plan.forward_end, kernels());
  expect_forward_first(plan);
  Frame whole = frame(1), parts = frame(1);
  run(whole, 0, {});
  run(parts, 0, {0, plan.forward_end});
  EXPECT_EQ(parts.scalar("loss"), whole.scalar("loss"));
  run(parts, 0, {plan.forward_end});
  EXPECT_EQ(bits(parts), bits(whole));
}

// Recomputed values belong to the backward pass.
TEST_F(Parts, AreCutThereWithLessMemory) {
  const Graph graph = network();
  const Program small(recompute(graph, recompute_choices(graph).back()), {}, choices_);
  const Plan& plan = small.plan();
  ASSERT_GT(plan.kernels.size(), program_.plan().kernels.size());
  EXPECT_EQ(plan.forward_end, program_.plan().forward_end);
  expect_forward_first(plan);
  Frame whole = frame(1), parts = frame(small, 1);
  run(whole, 0, {});
  const StepContext context = {7, 3, 0};
  small.run(parts, pool_, {.context = context, .part = {0, plan.forward_end}});
  small.run(parts, pool_, {.context = context, .part = {plan.forward_end}});
  EXPECT_EQ(bits(parts), bits(whole));
}

TEST_F(Parts, RunInOrder) {
  Frame frame = this->frame(1);
  run(frame, 0, {0, 4});
  EXPECT_THROW(run(frame, 0, {5}), Error);
  EXPECT_THROW(run(frame, 0, {3}), Error);
  run(frame, 0, {4, 6});
  run(frame, 0, {0, 2});  // a new run may begin at any time
  run(frame, 0, {2});
  EXPECT_THROW(run(frame, 0, {2}), Error);
}

// Workers with other shards may recompute other values, but all exchange in the same order.
TEST(Recompute, LeavesExchangesWithOtherShardsAlone) {
  Graph built;
  const ShardPart part = ShardPart::all(2);
  Value h = built.input("x", {DType::f32, {8, 16}});
  for (const std::string layer : {"a", "b", "c"}) {
    std::vector<Value> halves = shard_copies(h, part);
    halves[0] = unary("tanh", dense(halves[0], built.parameter(layer + "0", {16, 16})));
    halves[1] = unary("tanh", dense(halves[1], built.parameter(layer + "1", {16, 16})));
    h = unary("tanh", shard_sum(halves, part));
  }
  built.set_output("loss", mean(h));
  const Graph graph = lower(built, Differentiation{.weight = "weight"});
  const auto exchanges = [](const Graph& in) {
    return std::count_if(in.nodes().begin(), in.nodes().end(),
                         [](const Node& node) { return exchanges_shards(node.op->name); });
  };
  bool recomputes = false;
  for (const RecomputeChoice& choice : recompute_choices(graph)) {
    const Graph again = recompute(graph, choice);
    recomputes = recomputes || again.nodes().size() > graph.nodes().size();
    EXPECT_EQ(exchanges(again), exchanges(graph));
  }
  EXPECT_TRUE(recomputes);
}

}  // namespace
}  // namespace artel
