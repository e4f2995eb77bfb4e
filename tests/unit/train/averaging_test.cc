// Averages of the weights of all workers.
#include "artel/train/strategies/averaging.h"

#include <gtest/gtest.h>

#include "tests/unit/train/workers.h"

namespace artel {
namespace {

// A weight and a state, and frozen ones.
Parameters four_parts() {
  const Layout row_major = Layout::row_major();
  return Parameters({{"weight", {4}, row_major},
                     {"frozen", {2}, row_major},
                     {"mean", {3}, row_major, true},
                     {"frozen mean", {3}, row_major, true}});
}

void fill(Parameters& parameters, std::string_view name, float value) {
  for (float& v : parameters.values(parameters.entry(name))) v = value;
}

// The one value that all elements have.
float value_of(const Parameters& parameters, std::string_view name) {
  const std::span<const float> values = parameters.values(parameters.entry(name));
  for (const float v : values) EXPECT_EQ(v, values[0]) << name;
  return values[0];
}

bool moves(const std::string& name) { return !name.starts_with("frozen"); }

TEST(Averaging, WeighsWorkersByTheirShares) {
  on_workers(3, [](int rank, Cluster& cluster) {
    Parameters parameters = four_parts(), none;
    fill(parameters, "weight", 8);
    Averaging averaging(cluster.membership(), parameters, none, moves, {});
    constexpr float kShares[] = {0.5f, 0.25f, 0.25f}, kOwn[] = {12, 4, 0};
    fill(parameters, "weight", kOwn[rank]);
    for (const char* name : {"frozen", "frozen mean"})
      fill(parameters, name, static_cast<float>(rank));
    fill(parameters, "mean", 2 * kOwn[rank]);
    averaging.meet(kShares[rank], 1);
    EXPECT_EQ(value_of(parameters, "weight"), 7);  // 8 + 0.5 * 4 + 0.25 * -4 + 0.25 * -8
    EXPECT_EQ(value_of(parameters, "mean"), 14);
    for (const char* name : {"frozen", "frozen mean"})  // left alone
      EXPECT_EQ(value_of(parameters, name), static_cast<float>(rank)) << name;
  });
}

// velocity = momentum * velocity + change; weight += rate * (change + momentum * velocity). States
// are averaged as they are.
TEST(Averaging, MomentumAndRateMoveTheCommonWeights) {
  on_workers(2, [](int rank, Cluster& cluster) {
    Parameters parameters = four_parts(), velocity(parameters.entries());
    Averaging averaging(cluster.membership(), parameters, velocity, moves,
                        {.momentum = 0.5, .learning_rate = 0.25});
    const auto meet_after = [&](float moved, int64_t step) {
      for (const char* name : {"weight", "mean"})
        fill(parameters, name, value_of(parameters, name) + (rank == 0 ? moved : 0));
      averaging.meet(0.5f, step);
    };
    meet_after(16, 1);                             // the change is 8, the velocity 8
    EXPECT_EQ(value_of(parameters, "weight"), 3);  // 0.25 * (8 + 4)
    EXPECT_EQ(value_of(parameters, "mean"), 8);
    meet_after(8, 2);                              // the change is 4, the velocity 8
    EXPECT_EQ(value_of(parameters, "weight"), 5);  // 3 + 0.25 * (4 + 4)
    EXPECT_EQ(value_of(parameters, "mean"), 12);
    EXPECT_EQ(value_of(velocity, "weight"), 8);
  });
}

// Later averages make up for the loss by compression in one of them; states are never compressed.
TEST(Averaging, PackedChangesArriveInTheEnd) {
  on_workers(2, [](int rank, Cluster& cluster) {
    Parameters parameters = four_parts(), none;
    Averaging averaging(cluster.membership(), parameters, none, moves, {.compress = "top-k 25%"});
    std::span<float> weight = parameters.values(parameters.entry("weight"));
    const float wanted[] = {4, 3, 2, 1};
    for (int i = 0; i < 4; ++i) weight[i] = rank == 0 ? 2 * wanted[i] : 0;
    fill(parameters, "mean", 6);
    averaging.meet(0.5f, 1);
    EXPECT_EQ(value_of(parameters, "mean"), 6);
    EXPECT_EQ(weight[0], 4);
    EXPECT_EQ(weight[3], 0);  // not sent yet
    for (int64_t step = 2; step < 10; ++step) averaging.meet(0.5f, step);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(weight[i], wanted[i]) << i;
  });
}

TEST(Averaging, StatesAreExactWhateverPacksTheWeights) {
  for (const char* codec : {"fp16", "int8", "top-k 10%", "sign", "powersgd 2"})
    on_workers(2, [&](int rank, Cluster& cluster) {
      Parameters parameters = four_parts(), none;
      Averaging averaging(cluster.membership(), parameters, none, moves, {.compress = codec});
      fill(parameters, "weight", static_cast<float>(2 * rank));
      fill(parameters, "mean", 1.0f + static_cast<float>(rank) / 1024);
      averaging.meet(0.5f, 1);
      EXPECT_EQ(value_of(parameters, "mean"), 1.0f + 0.5f / 1024) << codec;
    });
}

TEST(Averaging, GoesOnFromBetweenTwoMeetings) {
  on_workers(2, [](int rank, Cluster& cluster) {
    Parameters parameters = four_parts(), velocity(parameters.entries());
    const AveragingOptions options = {.momentum = 0.5};
    Averaging averaging(cluster.membership(), parameters, velocity, moves, options);
    fill(parameters, "weight", rank == 0 ? 4 : 0);
    averaging.meet(0.5f, 1);
    fill(parameters, "weight", rank == 0 ? 1 : 5);
    const OwnState between = averaging.state(true);
    averaging.meet(0.5f, 2);

    Parameters other = four_parts(), other_velocity(parameters.entries());
    Averaging resumed(cluster.membership(), other, other_velocity, moves, options);
    resumed.set_state(between);
    resumed.meet(0.5f, 2);
    EXPECT_EQ(value_of(other, "weight"), value_of(parameters, "weight"));
    EXPECT_EQ(value_of(other_velocity, "weight"), value_of(velocity, "weight"));
  });
}

}  // namespace
}  // namespace artel
