// Forecasts of trainings: known facts, sums of parts, and the search for the best.
#include "artel/plan/forecast/training_forecast.h"

#include <gtest/gtest.h>

#include <set>

#include "artel/base/error.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/lower.h"
#include "artel/plan/forecast/op_times.h"
#include "artel/plan/forecast/picture.h"
#include "artel/plan/forecast/search.h"
#include "artel/plan/machines/machine_file.h"

namespace artel::plan {
namespace {

constexpr int kLayers = 8;
constexpr int64_t kPlanWidth = 512;

// Equal layers: tanh(x w), eight times.
Graph layers_graph(int64_t samples) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {samples, kPlanWidth}});
  for (int i = 0; i < kLayers; ++i) {
    const Graph::Scope scope(graph, "layer" + std::to_string(i));
    x = unary("tanh", matmul(x, graph.parameter("w", {kPlanWidth, kPlanWidth})));
  }
  graph.set_output("loss", mean(x));
  return lower(graph, Differentiation{});
}

TrainingTask layers_task() {
  return {.name = "layers",
          .batch = 256,
          .lanes = 8,
          .slots = 2,
          .steps = 1000,
          .graph = [](int64_t samples, const ShardPart&) { return layers_graph(samples); }};
}

Machines some_machines(const std::string& more = "") {
  return parse_machines(
      "[[machine]]\ncount = 8\nflops = \"100 GFLOP/s\"\nmemory = \"1 GiB\"\n"
      "memory_bandwidth = \"1000 GB/s\"\nnetwork = \"1 Gbit/s\"\nprice = 1\n" +
          more,
      "m");
}

constexpr double kWeightBytes = 4.0 * kLayers * kPlanWidth * kPlanWidth;

TEST(TrainingForecast, OneWorkerComputesAllOperations) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines();
  TrainingForecaster forecaster(task, machines);
  const auto f = forecaster.forecast({.samples = 32});
  ASSERT_TRUE(f);
  // Forward, and two products in the backward pass except for the input of the first layer.
  const double products = (3.0 * kLayers - 1) * 2 * 256 * kPlanWidth * kPlanWidth;
  EXPECT_NEAR(f->flops, products, 0.02 * products);
  EXPECT_NEAR(f->step.compute, products / 100e9, 0.1 * products / 100e9);
  EXPECT_EQ(f->lanes, 8);
  EXPECT_DOUBLE_EQ(f->memory.weights, kWeightBytes);
  EXPECT_DOUBLE_EQ(f->memory.optimizer, 2 * kWeightBytes);
  EXPECT_EQ(f->network_bytes, 0);
  EXPECT_EQ(f->bottleneck, Bottleneck::compute);
  EXPECT_LT(f->least_seconds, f->seconds());
  EXPECT_GT(f->most_seconds, f->seconds());
}

TEST(TrainingForecast, MemoryFollowsTheSharding) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines();
  TrainingForecaster forecaster(task, machines);
  const auto memory = [&](const char* sharding) {
    return forecaster.forecast({.workers = 4, .sharding = sharding, .samples = 32})->memory;
  };
  EXPECT_DOUBLE_EQ(memory("optimizer").optimizer, 2 * kWeightBytes / 4);
  EXPECT_DOUBLE_EQ(memory("gradients").gradients, memory("none").gradients - 0.75 * kWeightBytes);
  EXPECT_DOUBLE_EQ(memory("weights").weights, kWeightBytes / 4);
}

TEST(TrainingForecast, AMachineSendsTheBytesOfARing) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines();
  TrainingForecaster forecaster(task, machines);
  for (const int64_t workers : {2, 8}) {
    const auto f = forecaster.forecast({.workers = workers, .samples = 8});
    EXPECT_NEAR(f->network_bytes, 2.0 * (workers - 1) / workers * kWeightBytes, 1);
    EXPECT_EQ(f->bottleneck, Bottleneck::network);
  }
}

TEST(TrainingForecast, APipelineIdlesForItsWorkersButOne) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines("latency = \"1 ns\"\n");
  TrainingForecaster forecaster(task, machines);
  const auto f = forecaster.forecast({.workers = 4, .pipeline = 4, .samples = 8});
  ASSERT_TRUE(f);
  EXPECT_EQ(f->lanes, 32);
  // Lanes of equal length: 32 on each worker, and p - 1 = 3 while the pipeline fills and drains.
  const double slot = f->step.compute / 32;
  EXPECT_GE(f->step.waiting, 3 * slot * 0.999);
  // Gradients of weights fill two thirds of that.
  const auto zero =
      forecaster.forecast({.workers = 4, .pipeline = 4, .samples = 8, .schedule = "zero_bubble"});
  EXPECT_NEAR(f->step.waiting - zero->step.waiting, 2 * slot, 0.3 * slot);
  EXPECT_LE(f->memory.activations, zero->memory.activations);
  EXPECT_NEAR(f->memory.weights, kWeightBytes / 4, kWeightBytes / 16);
}

TEST(TrainingForecast, RecomputationTradesTimeForActivations) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines();
  TrainingForecaster forecaster(task, machines);
  const auto keep = forecaster.forecast({.samples = 256});
  const auto again = forecaster.forecast({.recompute = true, .samples = 256});
  EXPECT_LT(again->memory.activations, 0.8 * keep->memory.activations);
  EXPECT_GT(again->step.compute, 1.2 * keep->step.compute);
  EXPECT_LT(again->step.compute, 1.5 * keep->step.compute);
}

TEST(TrainingForecast, VariationCostsWaiting) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines("variation = \"10 %\"\n");
  TrainingForecaster forecaster(task, machines);
  EXPECT_EQ(forecaster.forecast({.samples = 32})->step.waiting, 0);
  const auto eight = forecaster.forecast({.workers = 8, .samples = 8});
  EXPECT_NEAR(eight->step.waiting, 0.1 * 1.4236 * eight->step.compute, 1e-4 * eight->step.compute);
}

// Lanes of a core run together; those of several cores side by side.
TEST(TrainingForecast, LanesOfACoreCostAsMuchAsOne) {
  const TrainingTask task = layers_task();
  Machines machines = some_machines();
  machines.kinds[0].ops["product"] = {.flops = 50e9, .weight_bandwidth = 1e9};
  const auto compute = [&](int64_t samples) {
    TrainingForecaster forecaster(task, machines);
    return forecaster.forecast({.samples = samples})->step.compute;
  };
  EXPECT_DOUBLE_EQ(compute(32), compute(256));
  const double one = compute(32);
  machines.kinds[0].cores = 2;
  // Each core reads all weights for half of the samples.
  EXPECT_LT(compute(32), one);
  EXPECT_GT(compute(32), 0.5 * one);
}

TEST(TrainingForecast, MeasuredLanesAndCompiledMemoryReplaceTheModels) {
  TrainingTask task = layers_task();
  const Machines machines = some_machines();
  task.measure = [](const Graph& graph) { return std::vector<double>(graph.nodes().size(), 1e-3); };
  task.memory = [](const WholeWorker& worker) {
    return MemoryUse{.activations = 1000.0 * worker.lanes + worker.copies};
  };
  TrainingForecaster forecaster(task, machines);
  const auto f = forecaster.forecast({.samples = 32});
  EXPECT_NEAR(f->step.compute, 1e-3 * layers_graph(256).nodes().size(), 1e-9);
  EXPECT_EQ(f->memory.activations, 8001);
  EXPECT_EQ(f->memory.buffers, kProcessBytes);
  EXPECT_EQ(forecaster.forecast({.workers = 8, .samples = 8})->memory.activations, 4008);
  // Stages are no whole networks.
  EXPECT_GT(forecaster.forecast({.workers = 2, .pipeline = 2, .samples = 32})->memory.weights, 0);
}

// Costs are kept for later combinations, which may run on machines of the same arithmetic.
TEST(TrainingForecast, EachKindOfMachineHasItsOwnCosts) {
  const TrainingTask task = layers_task();
  const MachineKind kind = some_machines().kinds[0];
  MachineKind slow_memory = kind, measured = kind;
  slow_memory.memory_bandwidth = 1e9;
  measured.ops["product"] = {.flops = 1e9};
  MachineKind more_cores = measured;
  more_cores.cores = 4;
  LaneCostTable table(task);
  const auto seconds = [&](const MachineKind& one) {
    const GraphCosts& costs = table.find(32, 1, one)->costs;
    return costs.times(0, costs.nodes()).total();
  };
  const double fast = seconds(kind);
  EXPECT_GT(seconds(slow_memory), 2 * fast);
  EXPECT_GT(seconds(measured), 10 * fast);
  EXPECT_LT(seconds(more_cores), seconds(measured) / 2);
}

TEST(TrainingForecast, ImpossibleCombinationsHaveNone) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines();
  TrainingForecaster forecaster(task, machines);
  EXPECT_FALSE(forecaster.forecast({.workers = 3, .pipeline = 2}));
  EXPECT_FALSE(forecaster.forecast({.sharding = "weights"}));
  EXPECT_FALSE(forecaster.forecast({.workers = 512}));  // more copies than samples
  EXPECT_FALSE(forecaster.forecast({.workers = 64, .pipeline = 64, .samples = 1}));
}

TEST(Search, GoalsAreRead) {
  EXPECT_EQ(parse_goal("fastest").kind, Goal::Kind::fastest);
  EXPECT_EQ(parse_goal("fewest machines").kind, Goal::Kind::fewest_machines);
  EXPECT_DOUBLE_EQ(parse_goal("within 10 hours").within, 36000);
  EXPECT_THROW(parse_goal("best"), Error);
  EXPECT_THROW(parse_goal("within reason"), Error);
}

TEST(Search, TheBestFitsAndFollowsTheGoal) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines();
  TrainingForecaster forecaster(task, machines);
  const SearchResult fastest = search(forecaster, {}, 0);
  const SearchResult cheapest = search(forecaster, {.kind = Goal::Kind::cheapest}, 0);
  const SearchResult fewest = search(forecaster, {.kind = Goal::Kind::fewest_machines}, 0);
  ASSERT_FALSE(fastest.best.empty());
  EXPECT_LE(fastest.best.size(), 10u);
  for (const TrainingForecast& f : fastest.best) EXPECT_TRUE(f.fits());
  EXPECT_LE(fastest.best[0].seconds(), cheapest.best[0].seconds());
  EXPECT_LE(cheapest.best[0].price(1000), fastest.best[0].price(1000));
  EXPECT_EQ(fewest.best[0].pool.machines, 1);
  // A wire that takes longer than computing: one machine is the cheapest.
  EXPECT_EQ(cheapest.best[0].combination.workers, 1);
}

// Sharding, recomputation, and lane size compete with meshes; what costs time and saves no memory
// is left out.
TEST(Search, VariantsOfAMeshCompete) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines();
  TrainingForecaster forecaster(task, machines);
  const std::vector<TrainingForecast> best = search(forecaster, {}, 4).best;
  std::set<std::string> shardings;
  for (size_t i = 0; i < best.size(); ++i) {
    const Combination& c = best[i].combination;
    if (c.pipeline == 1) shardings.insert(c.sharding);
    for (size_t j = 0; j < i; ++j)
      if (mesh_text(best[j].combination) == mesh_text(c)) {
        EXPECT_LT(best[i].memory.total(), best[j].memory.total()) << to_string(c);
      }
  }
  EXPECT_GT(shardings.size(), 1u);
}

TEST(Search, MemoryLimitsWhatWouldBeFasterWithMore) {
  const TrainingTask task = layers_task();
  Machines machines = some_machines();
  TrainingForecaster forecaster(task, machines);
  const TrainingForecast most = search(forecaster, {}, 1).best[0];
  EXPECT_NE(most.bottleneck, Bottleneck::memory_size);
  double least = most.memory.total();
  for (const TrainingForecast& f : forecaster.all(1)) least = std::min(least, f.memory.total());
  machines.kinds[0].memory = least;
  const TrainingForecast small = search(forecaster, {}, 1).best[0];
  ASSERT_GT(small.seconds(), 1.05 * most.seconds());
  EXPECT_EQ(small.bottleneck, Bottleneck::memory_size);
  EXPECT_NE(reason_for(small, most).find("limited by memory size"), std::string::npos);
}

TEST(Search, SaysHowManyWouldDo) {
  const TrainingTask task = layers_task();
  Machines machines = some_machines();
  // Too little for weights, gradients, and two numbers of the optimizer each: 32 MiB in all.
  machines.kinds[0].memory = kProcessBytes + 24e6;
  TrainingForecaster forecaster(task, machines);
  const SearchResult none = search(forecaster, {}, 1);
  EXPECT_TRUE(none.best.empty());
  EXPECT_GT(none.smallest.memory.total(), machines.kinds[0].memory);
  const auto enough = with_fewest_workers(forecaster, {});
  ASSERT_TRUE(enough);
  EXPECT_GT(enough->combination.workers, 1);
  EXPECT_LE(enough->memory.total(), machines.kinds[0].memory);
  // Weights and two copies of parts of them: not only powers of two are tried.
  const auto in_parts = [&](int64_t workers) {
    double least = 1e30;
    for (const TrainingForecast& f : forecaster.all(workers))
      least = std::min(least, f.memory.total());
    return least;
  };
  machines.kinds[0].memory = in_parts(3);
  ASSERT_LT(machines.kinds[0].memory, in_parts(2));
  EXPECT_EQ(with_fewest_workers(forecaster, {})->combination.workers, 3);
  machines.kinds[0].memory = 1e6;
  EXPECT_FALSE(with_fewest_workers(forecaster, {}));
}

TEST(Search, KeepsTimeLimits) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines("inside = \"1 GB/s\"\n");
  TrainingForecaster forecaster(task, machines);
  const double alone = forecaster.forecast({.samples = 32})->seconds() * task.steps;
  for (const TrainingForecast& f : search(forecaster, {.within = alone * 1.01}, 0).best)
    EXPECT_LE(f.seconds() * task.steps, alone * 1.01);
  EXPECT_TRUE(search(forecaster, {.within = 1e-3}, 0).best.empty());
}

TEST(Search, ThePictureHasEveryCombination) {
  const TrainingTask task = layers_task();
  const Machines machines = some_machines();
  TrainingForecaster forecaster(task, machines);
  const SearchResult result = search(forecaster, {}, 4);
  const std::string svg = forecast_svg("layers & more", result.best);
  EXPECT_NE(svg.find("layers &amp; more"), svg.npos);
  for (const TrainingForecast& f : result.best)
    EXPECT_NE(svg.find(to_string(f.combination).substr(0, 20)), svg.npos);
}

TEST(OpTimes, SpeedsAreFoundAgain) {
  // Kernels whose times follow known speeds.
  const std::map<std::string, OpSpeed> ops = {
      {"product", {.flops = 40e9, .bandwidth = 10e9, .weight_bandwidth = 3e9, .overhead = 2e-6}},
      {"other", {.flops = 0, .bandwidth = 5e9, .overhead = 1e-6}}};
  std::vector<std::vector<KernelSample>> graphs(2);
  const auto add = [&](int i, const KernelWork& work) {
    graphs[static_cast<size_t>(i % 2)].push_back({work, seconds_of(work, ops.at(work.op_class))});
  };
  for (int i = 1; i <= 20; ++i) {
    add(i, {"product", 1e6 * i * i, 1e4 * i, 2e5 * (i % 5)});
    add(i, {"product", 3e6 * i, 2e5 * (21 - i), 1e4 * i});
    add(i, {"other", 1e4, 3e4 * i});
  }
  const OpFit fit = fit_op_speeds(graphs);
  EXPECT_LT(fit.error, 0.01);
  EXPECT_NEAR(fit.ops.at("product").flops, 40e9, 2e9);
  EXPECT_NEAR(fit.ops.at("product").weight_bandwidth, 3e9, 0.2e9);
  EXPECT_NEAR(fit.ops.at("other").bandwidth, 5e9, 0.25e9);
  EXPECT_NEAR(fit.ops.at("product").overhead, 2e-6, 0.5e-6);
}

// Three convolutions that kernels of different speed compute, and their gradients.
TEST(OpTimes, ConvolutionsAreOfSeveralClasses) {
  Graph graph;
  Value x = graph.input("x", {DType::f32, {2, 16, 8, 8}});
  x = conv2d(x, graph.parameter("a", {16, 16, 3, 3}), {}, {.padding = {1, 1}});
  x = conv2d(x, graph.parameter("b", {32, 16, 3, 3}), {}, {.stride = {2, 2}, .padding = {1, 1}});
  x = conv2d(x, graph.parameter("c", {8, 32, 1, 1}), {});
  graph.set_output("loss", mean(x));
  const Graph lane = lower(graph, Differentiation{});
  KernelChoices choices;
  choices.tune = false;
  const Plan plan = make_plan(lane, 1, choices);
  std::map<std::string, KernelWork> work;
  for (const PlannedKernel& kernel : plan.kernels) {
    KernelWork one = work_of(lane, plan, kernel);
    const std::string op_class = one.op_class;
    EXPECT_EQ(std::ranges::count(known_op_classes(), op_class), 1) << op_class;
    work.insert_or_assign(op_class, std::move(one));
  }
  for (const char* name : {"convolution_3x3", "convolution", "convolution_1x1"}) {
    ASSERT_TRUE(work.contains(name)) << name;
    ASSERT_TRUE(work.contains(std::string(name) + "_weights")) << name;
  }
  EXPECT_EQ(work["convolution_1x1"].flops, 2.0 * 2 * 8 * 4 * 4 * 32);
  EXPECT_GE(work["convolution_1x1"].weight_bytes, 4 * 8 * 32);
  EXPECT_GE(work["convolution_1x1_weights"].weight_bytes, 4 * 8 * 32);
}

TEST(OpTimes, MeasuredClassesReplaceTheRoughModel) {
  const Graph graph = layers_graph(32);
  MachineKind kind = some_machines().kinds[0];
  const auto sum = [&] {
    double seconds = 0;
    for (const double s : node_seconds(graph, kind)) seconds += s;
    return seconds;
  };
  const double rough = sum();
  EXPECT_GT(rough, 0);
  kind.ops["product"] = {.flops = kind.flops / 4};
  EXPECT_NEAR(sum() / rough, 4, 0.5);
  kind.cores = 4;
  EXPECT_NEAR(sum() / rough, 1, 0.2);
}

}  // namespace
}  // namespace artel::plan
