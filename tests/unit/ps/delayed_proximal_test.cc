#include "artel/ps/delayed_proximal.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <map>
#include <memory>
#include <thread>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "tests/unit/ps/servers.h"

namespace artel::ps {
namespace {

// Samples feature by feature.
struct Samples {
  std::vector<std::vector<uint64_t>> features, starts;
  std::vector<std::vector<uint32_t>> rows;
  std::vector<std::vector<float>> values;
  std::vector<float> targets;
  std::vector<uint64_t> cuts;
};

constexpr uint64_t kFeatures = 40;
constexpr int kRows = 300, kBlocks = 4;

// Some of the rows: sparse, with targets that follow a few features.
Samples samples_of(int64_t first, int64_t last) {
  Samples samples;
  for (int b = 0; b <= kBlocks; ++b) samples.cuts.push_back((kFeatures + 1) * b / kBlocks);
  std::vector<std::map<uint64_t, std::vector<std::pair<uint32_t, float>>>> columns(kBlocks);
  for (int64_t row = first; row < last; ++row) {
    Random random{7, static_cast<uint64_t>(row)};
    const auto place = static_cast<uint32_t>(samples.targets.size());
    float score = 0.3f;
    const auto add = [&](uint64_t feature, float value) {
      int block = 0;
      while (samples.cuts[block + 1] <= feature) ++block;
      columns[block][feature].push_back({place, value});
    };
    for (uint64_t feature = 0; feature < kFeatures; ++feature) {
      if (random.uniform() > 0.2f) continue;
      const float value = random.normal();
      if (feature < 5) score += 2 * value;
      add(feature, value);
    }
    add(kFeatures, 1);
    samples.targets.push_back(score + random.normal() > 0 ? 1 : -1);
  }
  for (const auto& block : columns) {
    auto& features = samples.features.emplace_back();
    auto& starts = samples.starts.emplace_back();
    auto& rows = samples.rows.emplace_back();
    auto& values = samples.values.emplace_back();
    for (const auto& [feature, entries] : block) {
      features.push_back(feature);
      starts.push_back(rows.size());
      for (const auto& [row, value] : entries) {
        rows.push_back(row);
        values.push_back(value);
      }
    }
    starts.push_back(rows.size());
  }
  return samples;
}

SparseProblem problem() {
  SparseProblem problem = {
      .constant = kFeatures, .size = kRows, .samples = [](int64_t first, int64_t last) {
        const auto samples = std::make_shared<const Samples>(samples_of(first, last));
        return SparseSamples{.targets = samples->targets, .block = [samples](int b) -> SparseBlock {
                               return {samples->features[b], samples->starts[b], samples->rows[b],
                                       samples->values[b]};
                             }};
      }};
  problem.cuts = samples_of(0, 0).cuts;
  return problem;
}

struct Outcome {
  PassReport report;
  std::vector<float> weights;
};

// All passes.
PassReport run(DelayedProximal& solver) {
  PassReport report;
  while (!solver.done()) report = solver.next(false);
  return report;
}

// Workers that solve `problem_of(rank)`, as `body(rank, solver)` has them do it, and servers behind
// them. Returns what each has failed by.
std::vector<std::string> on_solvers(
    int workers, int servers, const DelayedProximalOptions& options,
    const std::function<void(int rank, DelayedProximal&)>& body,
    const std::function<SparseProblem(int rank)>& problem_of = [](int) { return problem(); }) {
  return comm::run_ranks(workers + servers, [&](comm::Group& world) {
    comm::Group own = world.split(world.rank() >= workers ? 1 : 0);
    if (world.rank() >= workers) return Server(borrowed(world), {.workers = workers}).run();
    const SparseProblem problem = problem_of(world.rank());
    Client client(borrowed(world), workers,
                  ShardMap::even(problem_keys(problem, workers), servers));
    DelayedProximal solver(client, own, problem, options);
    body(world.rank(), solver);
    client.leave();
  });
}

Outcome solve(int workers, int servers, const DelayedProximalOptions& options) {
  Outcome outcome;
  const auto errors = on_solvers(workers, servers, options, [&](int rank, DelayedProximal& solver) {
    const PassReport report = run(solver);
    if (rank == 0) outcome = {report, solver.weights()};
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  return outcome;
}

const DelayedProximalOptions kLasso = {.penalty = {.l1 = 3, .l2 = 0.5}, .passes = 120};

// At the optimum no coordinate can lower the objective.
void expect_optimal(const Outcome& outcome, const Proximal& penalty) {
  const Samples samples = samples_of(0, kRows);
  std::vector<float> margins(samples.targets.size(), 0);
  for (int pass = 0; pass < 2; ++pass)
    for (int b = 0; b < kBlocks; ++b)
      for (size_t f = 0; f < samples.features[b].size(); ++f) {
        const float weight = outcome.weights[samples.features[b][f]];
        double gradient = 0;
        for (uint64_t i = samples.starts[b][f]; i < samples.starts[b][f + 1]; ++i) {
          const uint32_t row = samples.rows[b][i];
          if (pass == 0) margins[row] += samples.values[b][i] * weight;
          const float target = samples.targets[row];
          gradient -= samples.values[b][i] * target / (1 + std::exp(target * margins[row]));
        }
        if (pass == 0) continue;
        if (samples.features[b][f] == kFeatures) {
          EXPECT_NEAR(gradient, 0, 0.1);
        } else if (weight == 0) {
          EXPECT_LE(std::abs(gradient), penalty.l1 + 0.1);
        } else {
          EXPECT_NEAR(gradient + penalty.l2 * weight + std::copysign(penalty.l1, weight), 0, 0.1);
        }
      }
}

TEST(DelayedProximal, FindsTheOptimum) {
  const Outcome outcome = solve(1, 1, kLasso);
  expect_optimal(outcome, kLasso.penalty);
  EXPECT_EQ(outcome.report.samples, kRows);
  EXPECT_GT(outcome.report.nonzeros, 4);
  EXPECT_LT(outcome.report.nonzeros, 41);
}

TEST(DelayedProximal, FindsItWithAnyDelayWorkersAndServers) {
  const double best = solve(1, 1, kLasso).report.objective;
  for (const std::optional<int64_t> delay : {std::optional<int64_t>(0), {4}, {}}) {
    DelayedProximalOptions options = kLasso;
    options.delay = delay;
    if (!delay) options.passes = 500;
    const Outcome outcome = solve(3, 2, options);
    expect_optimal(outcome, options.penalty);
    EXPECT_NEAR(outcome.report.objective, best, 1e-3 * best) << "delay " << delay.value_or(-1);
  }
}

TEST(DelayedProximal, GivenOrderAndSquaredLoss) {
  DelayedProximalOptions options = kLasso;
  options.loss = "squared";
  options.order = {3, 2, 1, 0, 0};
  const double given = solve(2, 1, options).report.objective;
  options.order.clear();
  EXPECT_NEAR(solve(2, 1, options).report.objective, given, 1e-3 * given);
}

// In double precision.
double objective_of(const std::vector<float>& weights, const Proximal& penalty) {
  const Samples samples = samples_of(0, kRows);
  std::vector<double> margins(samples.targets.size(), 0);
  for (int b = 0; b < kBlocks; ++b)
    for (size_t f = 0; f < samples.features[b].size(); ++f)
      for (uint64_t i = samples.starts[b][f]; i < samples.starts[b][f + 1]; ++i)
        margins[samples.rows[b][i]] +=
            static_cast<double>(samples.values[b][i]) * weights[samples.features[b][f]];
  double objective = penalty.penalty(std::span(weights).first(kFeatures));
  for (size_t row = 0; row < margins.size(); ++row)
    objective += std::log1p(std::exp(-samples.targets[row] * margins[row]));
  return objective;
}

// After a few passes, when each still changes much.
TEST(DelayedProximal, TheLastReportIsAboutTheFinalWeights) {
  for (const char* const codec : {"", "fp16", "int8", "top-k 10%"})
    for (const std::optional<int64_t> delay : {std::optional<int64_t>(0), {4}, {}}) {
      DelayedProximalOptions options = kLasso;
      options.passes = 5;
      options.delay = delay;
      options.filters.compress = codec;
      const Outcome outcome = solve(3, 2, options);
      const double expected = objective_of(outcome.weights, options.penalty);
      EXPECT_NEAR(outcome.report.objective, expected, 1e-5 * expected)
          << "codec '" << codec << "', delay " << delay.value_or(-1);
    }
}

TEST(DelayedProximal, FiltersKeepTheResultAndSaveBytes) {
  const Outcome plain = [] {
    DelayedProximalOptions options = kLasso;
    options.balances = false;  // moved samples cost bytes, too
    options.filters = {.key_cache = false, .changes = false};
    return solve(2, 1, options);
  }();
  const auto with = [](const FilterOptions& filters) {
    DelayedProximalOptions options = kLasso;
    options.balances = false;
    options.filters = filters;
    return solve(2, 1, options);
  };
  for (const FilterOptions& filters :
       {FilterOptions{.key_cache = true, .changes = false},
        FilterOptions{.key_cache = false, .compress = "fp16", .changes = false},
        FilterOptions{.key_cache = false, .kkt = 0.5}, FilterOptions{.random_skip = 0.1}}) {
    const Outcome filtered = with(filters);
    EXPECT_NEAR(filtered.report.objective, plain.report.objective, 2e-3 * plain.report.objective);
    EXPECT_LT(filtered.report.sent_bytes, plain.report.sent_bytes);
  }
}

TEST(DelayedProximal, SamplesMoveFromTheSlowToTheFast) {
  constexpr int kWorkers = 3;
  const double best = solve(1, 1, kLasso).report.objective;
  for (const FilterOptions& filters : {FilterOptions{.key_cache = false, .changes = false},
                                       FilterOptions{.compress = "fp16", .kkt = 0.5}}) {
    std::array<int64_t, kWorkers> shares = {};
    double objective = 0;
    const auto slowed = [&](int rank) {
      SparseProblem slowed = problem();
      slowed.samples = [&shares, rank, make = slowed.samples](int64_t first, int64_t last) {
        SparseSamples samples = make(first, last);
        shares[rank] = last - first;
        // The last worker needs 5 times as long for a sample.
        const auto pause =
            std::chrono::microseconds((last - first) * (rank + 1 == kWorkers ? 25 : 5));
        samples.block = [pause, block = samples.block](int b) {
          std::this_thread::sleep_for(pause);
          return block(b);
        };
        return samples;
      };
      return slowed;
    };
    DelayedProximalOptions options = kLasso;
    options.delay = 4;
    options.filters = filters;
    const auto errors = on_solvers(
        kWorkers, 1, options,
        [&](int rank, DelayedProximal& solver) {
          const PassReport report = run(solver);
          if (rank == 0) objective = report.objective;
        },
        slowed);
    for (const std::string& error : errors) EXPECT_EQ(error, "");
    EXPECT_EQ(shares[0] + shares[1] + shares[2], kRows);
    EXPECT_LT(shares[2], kRows / 4);
    EXPECT_NEAR(objective, best, 2e-3 * best);
  }
}

TEST(DelayedProximal, GoesOnFromWhatWasSaved) {
  DelayedProximalOptions options = kLasso;
  options.passes = 6;
  const Outcome whole = solve(2, 2, options);
  options.passes = 4;
  const std::vector<float> saved = solve(2, 2, options).weights;
  options.passes = 6;
  options.passes_done = 4;
  options.weights = saved;
  const Outcome resumed = solve(3, 1, options);
  EXPECT_EQ(resumed.report.pass, 6);
  EXPECT_NEAR(resumed.report.objective, whole.report.objective, 1e-5 * whole.report.objective);
  for (size_t i = 0; i < saved.size(); ++i) EXPECT_NEAR(resumed.weights[i], whole.weights[i], 1e-4);
}

// Whatever the delay, the weights after a rest are those of the pass that was reported.
TEST(DelayedProximal, RestsAfterAPass) {
  DelayedProximalOptions options = kLasso;
  options.passes = 12;
  options.delay = 9;
  const auto errors = on_solvers(2, 1, options, [&](int rank, DelayedProximal& solver) {
    int64_t begun = 0;
    for (int64_t pass = 1; !solver.done(); ++pass) {
      const PassReport report = solver.next(false, [&](int64_t number) {
        begun = number;
        return number % 5 == 0;
      });
      EXPECT_EQ(report.pass, pass);
      if (pass % 5 == 0) {
        EXPECT_EQ(begun, pass);
      }
      if (rank == 0 && pass == 10) {
        const std::vector<float> weights = solver.weights();
        EXPECT_EQ(std::count_if(weights.begin(), weights.end() - 1,
                                [](float weight) { return weight != 0; }),
                  report.nonzeros - (weights.back() != 0 ? 1 : 0));
      }
    }
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
}

// A stop request of one worker ends the work of all after the same pass.
TEST(DelayedProximal, StopsByWish) {
  DelayedProximalOptions options = kLasso;
  options.delay = 4;
  std::vector<int64_t> last(2);
  const auto errors = on_solvers(2, 1, options, [&](int rank, DelayedProximal& solver) {
    PassReport report;
    while (!solver.done()) report = solver.next(rank == 1 && report.pass == 3);
    last[rank] = report.pass;
  });
  for (const std::string& error : errors) EXPECT_EQ(error, "");
  EXPECT_EQ(last[0], last[1]);
  EXPECT_GT(last[0], 3);
  EXPECT_LT(last[0], 10);
}

TEST(DelayedProximal, StopsTogether) {
  DelayedProximalOptions options = kLasso;
  options.delay = 8;
  options.tolerance = 1e-3;
  const Outcome outcome = solve(3, 2, options);
  EXPECT_LT(outcome.report.pass, 120);
}

TEST(DelayedProximal, RefusesWhatItDoesNotKnow) {
  const auto errors = on_solvers(1, 1, {.loss = "hinge"}, [](int, DelayedProximal&) {});
  EXPECT_EQ(errors[0], "[ddpg] loss: got 'hinge', expected logistic or squared");
}

}  // namespace
}  // namespace artel::ps
