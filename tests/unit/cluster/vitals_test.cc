#include "artel/cluster/vitals.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace artel {
namespace {

TEST(Vitals, SurviveTheWayToWorkerZero) {
  VitalSigns signs;
  signs.set({.step = 7, .samples = 640, .lanes = 3, .training = 1.5, .received_bytes = 12});
  const std::string bytes = to_bytes(signs.now()) + std::string(40, '\0');
  const std::optional<Vitals> read = artel::vitals_from(bytes);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->step, 7);
  EXPECT_EQ(read->samples, 640);
  EXPECT_EQ(read->lanes, 3);
  EXPECT_EQ(read->training, 1.5);
  EXPECT_EQ(read->received_bytes, 12);
  EXPECT_GT(read->at, 0);
  EXPECT_GT(read->memory_bytes, 1 << 20);
  EXPECT_GT(read->processor_seconds, 0);
}

TEST(Vitals, PlacesThatNoMeshHasAreUnknown) {
  const auto known = [](MeshCoordinates mesh) {
    return artel::vitals_from(to_bytes({.at = 1, .mesh = mesh})).has_value();
  };
  EXPECT_TRUE(known({.data = 1, .stage = 2, .stages = 2, .pipeline = 4}));
  EXPECT_FALSE(known({.stage = 0, .stages = int64_t{1} << 60, .pipeline = 1}));  // to be listed
  EXPECT_FALSE(known({.stage = 0, .stages = 2, .pipeline = INT64_MAX}));
  EXPECT_FALSE(known({.data = -7}));
}

TEST(Vitals, WhoHasSaidNothingIsUnknown) {
  EXPECT_FALSE(artel::vitals_from(""));
  EXPECT_FALSE(artel::vitals_from(std::string(comm::kVitalsBytes, '\0')));
  EXPECT_FALSE(artel::vitals_from("short"));
}

TEST(Vitals, PushesOfAllThreadsAreCounted) {
  VitalSigns signs;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      for (int push = 0; push < 1000; ++push) signs.count_push(2);
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(signs.now().step, 4000);
  EXPECT_EQ(signs.now().staleness, 8000);
}

}  // namespace
}  // namespace artel
