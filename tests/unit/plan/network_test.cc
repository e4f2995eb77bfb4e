// Exchanges on simulated networks: bytes by the real schedules, closed forms, and SimGrid.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/observe/trace.h"
#include "artel/plan/machines/machine_file.h"
#include "artel/plan/network/failures.h"
#include "artel/plan/network/step_simulation.h"

namespace artel::plan {
namespace {

constexpr double kBytes = 96e6;

Pool pool_of_machines(int64_t workers, int64_t devices = 1) {
  Machines machines = {
      .name = "test",
      .kinds = {
          {.count = 64, .devices = devices, .flops = 1e9, .memory = 1e9, .memory_bandwidth = 1e9}}};
  machines.kinds[0].network = {.latency = 50e-6, .bandwidth = 125e6};
  machines.kinds[0].inside = {.latency = 5e-6, .bandwidth = 4e9};
  return pool_of(machines, workers);
}

double bytes_of(std::string_view strategy, int workers, int servers = 1) {
  const Pool pool = pool_of_machines(workers);
  return busiest_bytes(make_exchange(strategy, pool, servers, kBytes));
}

double exact_bytes(int workers, int lanes, int devices = 1) {
  const Pool pool = pool_of_machines(workers, devices);
  return busiest_bytes(make_exchange("exact", pool, 1, kBytes, lanes));
}

TEST(Exchange, ARingMovesTwiceTheBytesButOnePart) {
  for (const int n : {2, 3, 8, 31})
    for (const char* strategy : {"ring", "direct"})
      EXPECT_NEAR(bytes_of(strategy, n), 2.0 * (n - 1) / n * kBytes, 1) << strategy << n;
  EXPECT_NEAR(bytes_of("halving", 8), 2.0 * 7 / 8 * kBytes, 1);
}

TEST(Exchange, ACoordinatorReceivesAllGradients) {
  for (const int n : {2, 5, 16}) EXPECT_NEAR(bytes_of("coordinator", n), (n - 1) * kBytes, 1);
}

TEST(Exchange, ServersDivideTheGradients) {
  // Each machine has a worker and a server: G out and in, without the part that stays.
  EXPECT_NEAR(bytes_of("ps", 8, 8), 2.0 * 7 / 8 * kBytes, 1);
  // One server on the machine of worker 0 has the link of seven others.
  EXPECT_NEAR(bytes_of("ps", 8, 1), 7 * kBytes, 1);
}

TEST(Exchange, HierarchicalSumsLeaveAMachineOnce) {
  const Pool pool = pool_of_machines(16, 4);
  EXPECT_EQ(pool.machines, 4);
  EXPECT_NEAR(busiest_bytes(make_exchange("hierarchical", pool, 1, kBytes)), 2.0 * 3 / 4 * kBytes,
              1);
}

// k partial sums of each machine and a total: (k + 1)(M - 1)/M of the bytes.
TEST(Exchange, AnExactSumSendsEachSubtreeOfAMachine) {
  EXPECT_NEAR(exact_bytes(4, 8), 2.0 * 3 / 4 * kBytes, 1);
  // Lanes 0-1, 2-4, and 5-7: the second and the third worker hold two subtrees each.
  EXPECT_NEAR(exact_bytes(3, 8), 3.0 * 2 / 3 * kBytes, 1);
  // The four workers of a machine hold one subtree together.
  EXPECT_NEAR(exact_bytes(8, 8, 4), 2.0 * 1 / 2 * kBytes, 1);
}

TEST(Exchange, EverySendHasItsReceive) {
  for (const std::string& strategy : exchange_strategies()) {
    const Exchange exchange = make_exchange(strategy, pool_of_machines(12, 2), 3, kBytes);
    std::map<std::tuple<int, int, int>, double> balance;
    for (int rank = 0; rank < exchange.ranks(); ++rank)
      for (const Transfer& t : transfers_of(exchange, rank)) {
        const auto key =
            t.sends ? std::tuple(t.round, rank, t.peer) : std::tuple(t.round, t.peer, rank);
        EXPECT_GE(t.first, 0) << strategy;
        EXPECT_LE(t.first + t.bytes, kBytes * 1.0001) << strategy;
        balance[key] += t.sends ? t.bytes : -t.bytes;
      }
    for (const auto& [key, bytes] : balance) EXPECT_NEAR(bytes, 0, 1e-6) << strategy;
  }
}

TEST(Exchange, UnknownStrategiesAreNamed) {
  EXPECT_THROW(make_exchange("rink", pool_of_machines(2), 1, 1), Error);
  EXPECT_THROW(make_exchange("ps", pool_of_machines(2), 3, 1), Error);
}

TEST(ClosedForm, ACoordinatorSaturatesItsLink) {
  const Pool pool = pool_of_machines(9);
  const auto time = [&](const char* strategy) {
    return closed_form(pool, {.exchange = make_exchange(strategy, pool, 1, kBytes)}).seconds;
  };
  EXPECT_GT(time("coordinator"), 8 * kBytes / 125e6);
  EXPECT_NEAR(time("ring"), 2 * 8.0 / 9 * kBytes / 125e6, 0.01);
}

TEST(ClosedForm, ComputingHidesTheExchange) {
  const Pool pool = pool_of_machines(4);
  const Exchange exchange = make_exchange("ring", pool, 1, kBytes);
  EXPECT_NEAR(closed_form(pool, {exchange, 100}).seconds, 100, 1e-9);
  EXPECT_NEAR(closed_form(pool, {exchange, 100}).waiting, 0, 1e-9);
  const StepResult short_step = closed_form(pool, {exchange, 0.3});
  EXPECT_NEAR(short_step.seconds, 0.1 + short_step.exchange, 1e-9);
}

TEST(ClosedForm, VariationMakesTheMeanWorkerWait) {
  Pool pool = pool_of_machines(32);
  pool.kind.variation = 0.1;
  const StepResult step = closed_form(pool, {make_exchange("ring", pool, 1, 1), 10});
  EXPECT_NEAR(step.seconds, 10 * (1 + 0.1 * expected_largest(32)), 0.01);
  EXPECT_NEAR(step.waiting, 1 - 10 / step.seconds, 0.001);
}

// Forecasts count on the same slowest machine.
TEST(ClosedForm, TheSlowestOfTwoIsAsSlowAsExpected) {
  Pool pool = pool_of_machines(2);
  pool.kind.variation = 0.1;
  EXPECT_NEAR(closed_form(pool, {make_exchange("ring", pool, 1, 1), 10}).seconds, 10.564, 0.001);
}

TEST(SimulatedStep, TasksTravelAsText) {
  Pool pool = pool_of_machines(12, 2);
  pool.kind.variation = 0.03;
  const SimulatedStep step = {make_exchange("ps", pool, 3, kBytes), 0.25};
  const SimulatorTask read = read_simulator_arguments(simulator_arguments(pool, step));
  EXPECT_EQ(simulator_arguments(read.pool, read.step), simulator_arguments(pool, step));
  EXPECT_EQ(read.step.exchange.hosts, step.exchange.hosts);
  EXPECT_EQ(compute_seconds(read.pool, read.step), compute_seconds(pool, step));
  EXPECT_THROW(read_simulator_arguments({"ring", "x"}), Error);
}

TEST(ClosedForm, LocalStepsShareAnExchange) {
  const Pool pool = pool_of_machines(4);
  const Exchange exchange = make_exchange("ring", pool, 1, kBytes);
  const double once = closed_form(pool, {exchange, 0.2}).exchange;
  const StepResult local = closed_form(pool, {exchange, 0.2, 8});
  EXPECT_NEAR(local.exchange, once / 8, 1e-9);
  EXPECT_NEAR(local.seconds, 0.2 + once / 8, 1e-9);
}

TEST(ClosedForm, ADelayHidesTheSlowerOfComputingAndServing) {
  const Pool pool = pool_of_machines(8);
  const Exchange exchange = make_exchange("ps", pool, 8, kBytes);
  const double serving = closed_form(pool, {exchange, 0}).exchange;
  for (const double compute : {serving / 2, 2 * serving})
    EXPECT_NEAR(closed_form(pool, {exchange, compute, 1, 4}).seconds, std::max(compute, serving),
                1e-9);
}

// A server receives G from each of n - 1 other workers and sends G to each: 2 (n - 1) G / B must
// not exceed what the rest of the step hides, and a tenth of the step.
TEST(ClosedForm, AServerSaturatesAtTheWorkersOfItsLink) {
  const Machines machines = {
      .name = "test",
      .kinds = {{.count = 64, .flops = 1e9, .memory = 1e9, .memory_bandwidth = 1e9}}};
  const double bytes = 1e6, compute = 1, bandwidth = 125e6;
  const double served = (1.1 - kStepBeforeSums) * compute * bandwidth / (2 * bytes) + 1;
  EXPECT_NEAR(saturating_workers(machines, 1, bytes, compute, 10'000), served, 2);
  EXPECT_GT(saturating_workers(machines, 4, bytes, compute, 10'000), 3 * served);
  EXPECT_EQ(saturating_workers(machines, 1, bytes, compute, 10), 0);
}

// Simulated failures: work is saved in pieces, and a failure loses the current one.
double simulated_loss(double rate, double piece, double overhead, double pause) {
  Random random({7});
  double useful = 0, time = 0;
  const auto next = [&] { return -std::log(1 - random.uniform()) / rate; };
  double failure = next();
  while (useful < 2e7) {
    if (failure > piece + overhead) {
      failure -= piece + overhead;
      time += piece + overhead;
      useful += piece;
    } else {
      time += failure + pause;
      failure = next();
    }
  }
  return 1 - useful / time;
}

TEST(Failures, CostAsMuchAsSimulatedOnes) {
  const FailureModel model = {.machines = 100, .between_failures = 5 * 86400.0, .step = 2};
  const double rate = model.machines / model.between_failures;
  const FailureCost cost = failure_cost(model);
  EXPECT_NEAR(cost.per_day, 20, 1e-9);
  EXPECT_NEAR(cost.elastic, simulated_loss(rate, model.step, 0, 22), 0.05 * cost.elastic);
  EXPECT_NEAR(cost.restarts, simulated_loss(rate, cost.interval, 5, 85), 0.05 * cost.restarts);
  EXPECT_LT(cost.elastic, cost.restarts / 2);
}

TEST(Failures, TheIntervalOfCheckpointsIsTheBest) {
  FailureModel model = {.machines = 100, .between_failures = 5 * 86400.0, .step = 2};
  const FailureCost cost = failure_cost(model);
  const double rate = model.machines / model.between_failures;
  for (const double factor : {0.5, 2.0})
    EXPECT_GT(simulated_loss(rate, factor * cost.interval, 5, 85), cost.restarts);
  model.between_failures = 1;  // a failure of 100 machines every 10 ms
  EXPECT_NEAR(failure_cost(model).restarts, 1, 1e-6);
}

// Where SimGrid is installed.
class SimulatedMessages : public testing::Test {
 protected:
  void SetUp() override {
    if (!can_simulate_messages()) GTEST_SKIP() << "built without SimGrid";
  }
  static double simulated(const Pool& pool, const char* strategy, double compute = 0) {
    const SimulatedStep step = {make_exchange(strategy, pool, 1, kBytes), compute};
    const StepResult result = simulate_messages(pool, step, 120);
    EXPECT_TRUE(result.simulated);
    return result.seconds;
  }
};

TEST_F(SimulatedMessages, AgreeWithTheFormOfARing) {
  for (const int n : {2, 8, 32}) {
    const Pool pool = pool_of_machines(n);
    const double ideal = 2.0 * (n - 1) / n * kBytes / 125e6 + 2 * (n - 1) * 50e-6;
    EXPECT_NEAR(simulated(pool, "ring"), ideal, 0.02 * ideal) << n;
  }
}

TEST_F(SimulatedMessages, ACoordinatorSaturatesItsLink) {
  const Pool pool = pool_of_machines(8);
  const double ideal = 7 * kBytes / 125e6;
  const double seconds = simulated(pool, "coordinator");
  EXPECT_GT(seconds, ideal);
  // Sums are broadcast while gradients arrive.
  EXPECT_LT(seconds, 1.02 * ideal);
}

// Data streams through the levels of a tree.
TEST_F(SimulatedMessages, AgreeWithTheClosedFormOfEveryStrategy) {
  const auto expect_same = [](const Pool& pool, const std::string& strategy, int servers,
                              int lanes) {
    const SimulatedStep step = {make_exchange(strategy, pool, servers, kBytes, lanes), 0};
    const StepResult form = closed_form(pool, step), real = simulate_messages(pool, step, 120);
    // Other numbers than powers of two add pairs of ranks that disturb the others. Rings are
    // faster.
    const double within = strategy == "halving" ? 0.25 : 0.06;
    EXPECT_NEAR(real.exchange / form.exchange, 1, within)
        << strategy << " " << pool.workers << " on " << pool.machines << ", " << servers
        << " servers, " << lanes << " lanes: " << real.exchange << " s, by the form "
        << form.exchange;
    EXPECT_NEAR(real.utilisation * real.seconds, form.utilisation * form.seconds, 1e-3)
        << strategy << " " << pool.workers;
  };
  for (const std::string& strategy : exchange_strategies()) {
    for (const int n : {2, 3, 4, 5, 8, 11, 16})
      expect_same(pool_of_machines(n), strategy, strategy == "ps" ? n : 1, n);
    for (const int n : {8, 16}) expect_same(pool_of_machines(n, 4), strategy, 1, n);
  }
  expect_same(pool_of_machines(8), "ps", 1, 1);
  expect_same(pool_of_machines(8), "ps", 3, 1);
  expect_same(pool_of_machines(6), "exact", 1, 8);
}

TEST_F(SimulatedMessages, AverageAfterLocalSteps) {
  Pool pool = pool_of_machines(4);
  pool.kind.variation = 0.1;
  const SimulatedStep step = {make_exchange("ring", pool, 1, kBytes), 0.2, 8};
  const StepResult form = closed_form(pool, step), real = simulate_messages(pool, step, 120);
  EXPECT_NEAR(real.seconds, form.seconds, 0.02 * form.seconds);
  EXPECT_NEAR(real.waiting, form.waiting, 0.02);
}

TEST_F(SimulatedMessages, AreWrittenAsATimeline) {
  const Pool pool = pool_of_machines(3);
  const std::string path = fmt::format("{}/simulated{}.json", testing::TempDir(), getpid());
  const SimulatedStep step = {make_exchange("ring", pool, 1, kBytes), 0.3};
  const StepResult result = simulate_messages(pool, step, 120, path);
  observe::Trace trace;
  trace.load(path);
  std::filesystem::remove(path);
  double last = 0, computing = 0;
  for (const observe::TraceEvent& event : trace.events()) {
    last = std::max(last, event.begin + event.duration);
    if (event.category == "compute") computing += event.duration;
  }
  EXPECT_NEAR(last, result.seconds, 1e-3);
  EXPECT_NEAR(computing, 3 * 0.3, 1e-3);
  EXPECT_EQ(trace.process_name(2), "worker 2");
}

TEST_F(SimulatedMessages, OverlapComputing) {
  EXPECT_NEAR(simulated(pool_of_machines(4), "ring", 50), 50, 1e-6);
}

}  // namespace
}  // namespace artel::plan
