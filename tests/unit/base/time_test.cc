#include "artel/base/time.h"

#include <gtest/gtest.h>

namespace artel {
namespace {

TEST(Deadline, PassesOrNever) {
  EXPECT_TRUE(Deadline::after(0).passed());
  EXPECT_EQ(Deadline::after(-1).left(), 0);
  EXPECT_FALSE(Deadline::after(1000).passed());
  EXPECT_LE(Deadline::after(1000).left(), 1000);
  EXPECT_FALSE(Deadline::never().passed());
  EXPECT_GT(Deadline::never().left(), 1e9);
}

TEST(Duration, ForPeople) {
  EXPECT_EQ(format_duration(12.34), "12.3 s");
  EXPECT_EQ(format_duration(245), "4 min 05 s");
  EXPECT_EQ(format_duration(3 * 3600 + 12 * 60), "3 h 12 min");
}

}  // namespace
}  // namespace artel
