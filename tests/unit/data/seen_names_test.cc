#include "artel/data/tables/seen_names.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace artel::data {
namespace {

TEST(SeenNames, NumbersNamesInTheOrderOfTheirFirstSight) {
  constexpr int32_t kCount = 10000;
  SeenNames names;
  EXPECT_EQ(names.size(), 0);
  for (int round = 0; round < 2; ++round)
    for (int32_t i = 0; i < kCount; ++i)
      ASSERT_EQ(names.code_of(i == 7 ? "" : fmt::format("name {}", i * i)), i);
  EXPECT_EQ(names.size(), kCount);
  EXPECT_EQ(names.name(0), "name 0");
  EXPECT_EQ(names.name(7), "");
  EXPECT_EQ(names.name(kCount - 1), "name 99980001");
}

}  // namespace
}  // namespace artel::data
