// The worker whose state all continue with.
#include "artel/train/loop/state_source.h"

#include <gtest/gtest.h>

#include "tests/unit/train/workers.h"

namespace artel {
namespace {

// What a worker has when a membership begins.
struct Had {
  int64_t step = 0;
  bool trained = true;  // in another membership
  bool alone = false;
  bool copies = false;
};

constexpr int64_t kStepsPerEpoch = 10;

// The choice as each of the workers sees it.
std::vector<StateSource> chosen(const std::vector<Had>& workers) {
  std::vector<StateSource> sources(workers.size());
  on_workers(static_cast<int>(workers.size()), [&](int rank, Cluster& cluster) {
    const Had& had = workers[static_cast<size_t>(rank)];
    TrainerState state(cluster, network(), {});
    state.generation = had.trained ? 7 : -1;
    state.step = had.step;
    state.in_step = !had.alone;
    state.alone = had.alone;
    sources[static_cast<size_t>(rank)] =
        most_advanced(state, *cluster.group(), kStepsPerEpoch, had.copies);
  });
  return sources;
}

TEST(StateSource, IsWorkerZeroOfAFreshRun) {
  for (const StateSource& source : chosen({{.trained = false}, {.trained = false}})) {
    EXPECT_TRUE(source.is_fresh);
    EXPECT_EQ(source.rank, 0);
    EXPECT_TRUE(source.newcomers.empty());
  }
}

TEST(StateSource, IsAWorkerThatHasFinishedTheMostSteps) {
  const std::vector<StateSource> sources = chosen({{.step = 4}, {.step = 5}, {.step = 4}});
  for (size_t rank = 0; rank < sources.size(); ++rank) {
    EXPECT_EQ(sources[rank].rank, 1);
    EXPECT_EQ(sources[rank].self_current, rank == 1);
    EXPECT_FALSE(sources[rank].rank0_current);
    // The others have lanes, so they cannot receive the state while they compute.
    EXPECT_TRUE(sources[rank].newcomers.empty());
  }
}

TEST(StateSource, KnowsWhichWorkersAreNewcomers) {
  for (const StateSource& source : chosen({{.trained = false}, {.step = 3}, {.step = 3}})) {
    EXPECT_EQ(source.rank, 1);
    EXPECT_FALSE(source.all_current);
    EXPECT_EQ(source.newcomers, (std::vector{true, false, false}));
  }
}

TEST(StateSource, LeavesWorkersThatRunApartTheirOwnStep) {
  const std::vector<StateSource> sources =
      chosen({{.step = 8, .alone = true}, {.step = 6, .alone = true}, {.trained = false}});
  EXPECT_TRUE(sources[0].continues_apart);
  EXPECT_TRUE(sources[1].continues_apart);
  EXPECT_FALSE(sources[2].continues_apart);
  EXPECT_EQ(sources[2].rank, 0);
}

TEST(StateSource, IsNoWorkerIfTheStateIsInParts) {
  for (const StateSource& source : chosen({{.step = 3, .copies = true}, {.step = 3}}))
    EXPECT_TRUE(source.in_parts);
}

}  // namespace
}  // namespace artel
