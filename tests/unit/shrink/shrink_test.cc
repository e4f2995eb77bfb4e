// Targets of size, speed and quality, and the choice among candidates.
#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/shrink/shrink_run.h"

namespace artel::shrink {
namespace {

TEST(ShrinkTarget, PhrasesAreRead) {
  const ShrinkTarget all = parse_target("4x smaller, 2.5x faster, at most 1 point worse");
  EXPECT_EQ(all.smaller, 4);
  EXPECT_EQ(all.faster, 2.5);
  EXPECT_EQ(all.worse, 1);
  EXPECT_EQ(parse_target("at most 0.5 points worse").worse, 0.5);
  EXPECT_EQ(parse_target("at most 3% worse").worse, 3);
  EXPECT_FALSE(parse_target("2x smaller").worse.has_value());
  for (const char* text :
       {"", "4 smaller", "x smaller", "0.5x faster", "1 point worse", "at most one point worse",
        "at most -1 points worse", "4x smaller,", "4x smaller and 2x faster", "nanx smaller"})
    EXPECT_THROW(parse_target(text), Error) << text;
}

TEST(ShrinkTarget, TheCandidateThatLosesLeastIsTheBest) {
  const std::vector<Candidate> all = {{.folder = "a"},
                                      {.folder = "b", .smaller = 4, .faster = 2, .lost = 0.9},
                                      {.folder = "c", .smaller = 5, .faster = 2.1, .lost = 0.4},
                                      {.folder = "d", .smaller = 5, .faster = 3, .lost = 0.4},
                                      {.folder = "e", .smaller = 3, .faster = 9, .lost = -1}};
  const ShrinkTarget target = parse_target("4x smaller, 2x faster, at most 1 point worse");
  ASSERT_NE(best_of(all, target), nullptr);
  EXPECT_EQ(best_of(all, target)->folder, "d");
  EXPECT_EQ(best_of(all, parse_target("1x smaller"))->folder, "e");
  EXPECT_EQ(best_of(all, parse_target("10x smaller")), nullptr);
}

TEST(ShrinkTarget, CandidatesHaveNames) {
  EXPECT_EQ(Candidate().name(), "original");
  EXPECT_EQ((Candidate{.units = 0.5, .bits = 8}.name()), "50 % of the units removed, int8 weights");
  EXPECT_EQ((Candidate{.bits = 4}.name()), "int4 weights");
}

}  // namespace
}  // namespace artel::shrink
