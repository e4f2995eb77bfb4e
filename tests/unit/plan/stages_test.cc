#include "artel/plan/stages.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/exec/libraries.h"
#include "artel/exec/program.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/lower.h"

namespace artel::plan {
namespace {

// A convolution with batch norm, dropout, a skip connection over everything between the first and
// the last layer, and a matrix that is used twice.
Graph network_with_everything() {
  Graph graph;
  const auto weight = [&](const char* name, Shape shape) { return graph.parameter(name, shape); };
  const Value twice = weight("twice", {16, 16});
  Value h = graph.input("x", {DType::f32, {4, 3, 6, 6}});
  h = conv2d(h, weight("conv", {8, 3, 3, 3}), {}, {.padding = {1, 1}});
  h = batch_norm(h, weight("scale", {8}), weight("shift", {8}), graph.state("mean", {8}),
                 graph.state("variance", {8}));
  h = flatten(relu(h));
  const Value early = dense(dropout(h, 0.25), weight("w", {16, 8 * 36}), weight("b", {16}));
  h = relu(dense(unary("tanh", early), twice));
  h = dense(layer_norm(h, weight("gain", {16}), weight("offset", {16})), twice);
  h = dense(add(h, early), weight("v", {5, 16}));
  graph.set_output("loss", cross_entropy(h, graph.input("y", {DType::i32, {4}})));
  return lower(graph, Differentiation{.weight = "weight"});
}

void set_inputs(Frame& frame) {
  Random random{3};
  Tensor x({4, 3, 6, 6}), y({4}, DType::i32);
  for (float& v : x.values<float>()) v = random.uniform(-1, 1);
  for (int32_t& v : y.values<int32_t>()) v = static_cast<int32_t>(random.below(5));
  frame.set_input("x", x);
  frame.set_input("y", y);
  frame.set_input("weight", Tensor::from<float>({}, {0.5f}));
}

class StagesOfANetwork : public testing::Test {
 protected:
  StagesOfANetwork()
      : whole_(network_with_everything(), {}, choices_), parameters_(whole_.parameter_entries()) {
    for (const ParameterEntry& entry : parameters_.entries()) {
      Random random{hash_name(entry.name)};
      for (float& v : parameters_.values(entry)) v = random.uniform(0.1f, 0.5f);
    }
    Frame frame(whole_, parameters_);
    set_inputs(frame);
    whole_.run(frame, pool_, {.context = {1, 1, 0}});
    expected_ = gradients_of(whole_, frame);
    loss_ = frame.scalar("loss");
  }

  std::vector<int> origins() const {
    std::vector<int> all;
    for (NodeId id = 0; id < whole_.graph().forward_end(); ++id)
      all.push_back(whole_.graph().node(id).origin);
    return all;
  }

  using Gradients = std::map<std::string, std::vector<float>>;
  static Gradients gradients_of(const Program& program, Frame& frame) {
    Gradients result;
    for (const GradientSlot& slot : program.plan().gradients) {
      const float* const begin = frame.gradients().data() + slot.offset / sizeof(float);
      result[program.graph().value(slot.value).name].assign(begin,
                                                            begin + slot.bytes / sizeof(float));
    }
    return result;
  }

  // Runs all pieces in an order in which everything arrives, as a lane would pass them.
  void expect_same_bits(const std::vector<int>& cuts, int workers, bool splits) {
    const PipelineShape shape = {workers, static_cast<int>(cuts.size()), 1};
    const Stages stages(whole_.graph(), whole_.plan(), cuts, shape, splits);
    // One worker that runs the same pieces in the same order: delayed gradients of weights keep
    // their inputs alive on any worker.
    const PipelineShape alone_shape = {1, static_cast<int>(cuts.size()), 1};
    Program alone(network_with_everything(), {}, choices_);
    alone.restrict_to(Stages(whole_.graph(), whole_.plan(), cuts, alone_shape, splits).excerpt(0));
    std::vector<std::unique_ptr<Program>> programs;
    std::vector<std::unique_ptr<Frame>> frames;
    for (int worker = 0; worker < workers; ++worker) {
      programs.push_back(
          std::make_unique<Program>(network_with_everything(), CompileOptions{}, choices_));
      programs.back()->restrict_to(stages.excerpt(worker));
      ASSERT_NO_THROW(check_plan(programs.back()->graph(), programs.back()->plan()));
      EXPECT_LE(programs.back()->plan().activation_bytes,
                alone.plan().activation_bytes + most_received(stages, shape, worker));
      frames.push_back(std::make_unique<Frame>(*programs.back(), parameters_));
      set_inputs(*frames.back());
    }
    const auto run = [&](const StagePiece& piece) {
      const int worker = shape.worker_of(piece.stage);
      const std::vector<StagePiece> own = stages.pieces(worker);
      const auto at = std::find(own.begin(), own.end(), piece) - own.begin();
      const PlanPiece& part = programs[worker]->plan().pieces[at];
      for (const StageMessage& message : stages.messages())
        if (message.to == piece)
          for (const int id : message.buffers) {
            const std::span<std::byte> to = frames[worker]->buffer(id);
            ASSERT_EQ(to.size(), mail_.at({worker, id}).size());
            std::memcpy(to.data(), mail_.at({worker, id}).data(), to.size());
          }
      programs[worker]->run(
          *frames[worker], pool_,
          {.context = {1, 1, 0}, .part = {part.begin, part.end}, .check_memory = true});
      for (const StageMessage& message : stages.messages())
        if (message.from == piece)
          for (const int id : message.buffers) {
            const std::span<std::byte> from = frames[worker]->buffer(id);
            mail_[{shape.worker_of(message.to.stage), id}].assign(from.begin(), from.end());
          }
    };
    mail_.clear();
    for (int stage = 0; stage < shape.stages; ++stage) run({stage, Work::forward});
    for (int stage = shape.stages - 1; stage >= 0; --stage) {
      run({stage, splits ? Work::input_gradient : Work::backward});
      if (splits) run({stage, Work::weight_gradient});
    }
    Gradients got;
    for (int worker = 0; worker < workers; ++worker) {
      got.merge(gradients_of(*programs[worker], *frames[worker]));
      if (programs[worker]->computes("loss")) {
        EXPECT_EQ(frames[worker]->scalar("loss"), loss_);
      }
    }
    ASSERT_EQ(got.size(), expected_.size());
    for (const auto& [name, values] : expected_)
      EXPECT_EQ(std::memcmp(values.data(), got[name].data(), values.size() * sizeof(float)), 0)
          << name << " with cuts at " << fmt::format("{}", fmt::join(cuts, ", "));
  }

  static size_t most_received(const Stages& stages, const PipelineShape& shape, int worker) {
    size_t bytes = 0;
    for (const StageMessage& message : stages.messages())
      if (shape.worker_of(message.to.stage) == worker)
        bytes += message.bytes + 64 * message.buffers.size();
    return bytes;
  }

  KernelChoices choices_;
  Program whole_;
  Parameters parameters_;
  ThreadPool pool_{1, limit_library_threads};
  Gradients expected_;
  float loss_ = 0;
  std::map<std::pair<int, int>, std::vector<std::byte>> mail_;  // by worker and buffer
};

TEST_F(StagesOfANetwork, GiveTheBitsOfTheWholeWhereverItIsCut) {
  const std::vector<int> all = origins();
  for (size_t cut = 1; cut < all.size(); ++cut)
    for (const bool splits : {false, true}) expect_same_bits({all[0], all[cut]}, 2, splits);
}

TEST_F(StagesOfANetwork, WorkOnAnyNumberOfWorkers) {
  const std::vector<int> all = origins();
  const size_t n = all.size();
  const std::vector<int> four = {all[0], all[n / 4], all[n / 2], all[3 * n / 4]};
  for (const bool splits : {false, true})
    for (const int workers : {1, 2, 4}) expect_same_bits(four, workers, splits);
  expect_same_bits(all, static_cast<int>(n), true);  // a stage for each node
}

TEST_F(StagesOfANetwork, OwnEachParameterOnceAndShareWhatIsReadTwice) {
  const Graph& graph = whole_.graph();
  const ValueId twice = graph.find("twice").value();
  int cut = 0;  // before its second use
  for (NodeId id = 0; id < graph.forward_end(); ++id) {
    const std::vector<ValueId>& inputs = graph.node(id).inputs;
    if (std::find(inputs.begin(), inputs.end(), twice) != inputs.end()) cut = graph.node(id).origin;
  }
  const Stages stages(graph, whole_.plan(), {origins()[0], cut}, {2, 2, 1}, false);
  EXPECT_EQ(stages.owners().size(), whole_.plan().gradients.size());
  bool found = false;
  for (const SharedParameter& shared : stages.shared()) {
    if (graph.value(shared.value).name != "twice") continue;
    found = true;
    EXPECT_EQ(shared.owner, 0);
    EXPECT_EQ(shared.readers, std::vector<int>{1});
  }
  EXPECT_TRUE(found);
}

TEST_F(StagesOfANetwork, AnExcerptThatLacksWhatItReadsIsRefused) {
  const std::vector<int> all = origins();
  const Stages stages(whole_.graph(), whole_.plan(), {all[0], all[all.size() / 2]}, {2, 2, 1},
                      false);
  Excerpt excerpt = stages.excerpt(1);
  for (ExcerptPiece& piece : excerpt) piece.arrivals.clear();
  Program program(network_with_everything(), {}, choices_);
  EXPECT_THROW(program.restrict_to(excerpt), Error);
}

// A table of tokens in the first stage that is also the last layer, in the second.
TEST(Stages, RowsGoToATableThatIsLarger) {
  for (const int64_t rows : {5, 50}) {
    Graph built;
    const Value table = built.parameter("table", {rows, 8});
    const Value h = unary("tanh", embedding(built.input("x", {DType::i32, {4, 3}}), table));
    built.set_output("loss", mean(dense(h, table)));
    KernelChoices choices;
    const Program program(lower(built, Differentiation{.weight = "weight"}), {}, choices);
    const Graph& graph = program.graph();
    for (const bool splits : {false, true}) {
      const Stages stages(graph, program.plan(), {graph.node(0).origin, graph.node(2).origin},
                          {2, 2, 1}, splits);
      const bool deferred = rows == 50;
      EXPECT_EQ(stages.owners(), std::vector<int>{deferred ? 1 : 0});
      ASSERT_EQ(stages.shared().size(), 1U);
      EXPECT_EQ(stages.shared()[0].readers, std::vector<int>{deferred ? 0 : 1});
      EXPECT_EQ(stages.pieces(1).back().deferred, deferred);
      EXPECT_FALSE(stages.pieces(0).back().deferred);
      size_t to_deferred = 0;
      for (const StageMessage& message : stages.messages())
        if (message.to.deferred) to_deferred += message.bytes;
      EXPECT_EQ(to_deferred, deferred ? 4 * 3 * 8 * sizeof(float) : 0U);
      // Lanes of another size may have decided otherwise.
      const std::set<std::string> named = {"table"}, none;
      EXPECT_EQ(stages.deferred_gradients(), deferred ? named : none);
      const Stages agreed(graph, program.plan(), {graph.node(0).origin, graph.node(2).origin},
                          {2, 2, 1}, splits, deferred ? &none : &named);
      EXPECT_EQ(agreed.owners(), std::vector<int>{deferred ? 0 : 1});
      EXPECT_EQ(agreed.pieces(1).back().deferred, !deferred);
    }
  }
}

}  // namespace
}  // namespace artel::plan
