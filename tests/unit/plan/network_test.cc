// Exchanges on simulated networks: bytes by the real schedules, closed forms, and SimGrid.
#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/plan/machines/machine_file.h"
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

TEST(Exchange, EverySendHasItsReceive) {
  for (const std::string& strategy : exchange_strategies()) {
    const Exchange exchange = make_exchange(strategy, pool_of_machines(12, 2), 3, kBytes);
    std::map<std::tuple<int, int, int>, double> balance;
    for (int rank = 0; rank < exchange.ranks(); ++rank)
      for (const Transfer& t : transfers_of(exchange, rank)) {
        const auto key =
            t.sends ? std::tuple(t.round, rank, t.peer) : std::tuple(t.round, t.peer, rank);
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
  EXPECT_GT(step.seconds, 11);
  EXPECT_GT(step.waiting, 0.05);
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
  // A tree of three levels gives the sum to all; a parent has two children.
  EXPECT_LT(seconds, ideal + 3 * 2 * kBytes / 125e6 + 0.01);
}

TEST_F(SimulatedMessages, AgreeWithTheClosedFormOfOtherStrategies) {
  const Pool pool = pool_of_machines(16, 4);
  const Exchange exchange = make_exchange("hierarchical", pool, 1, kBytes);
  const double form = closed_form(pool, {exchange, 0}).seconds;
  EXPECT_NEAR(simulated(pool, "hierarchical"), form, 0.15 * form);
}

TEST_F(SimulatedMessages, OverlapComputing) {
  EXPECT_NEAR(simulated(pool_of_machines(4), "ring", 50), 50, 1e-6);
}

}  // namespace
}  // namespace artel::plan
