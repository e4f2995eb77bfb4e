#include "artel/observe/text_plot.h"

#include <gtest/gtest.h>

#include <cmath>

namespace artel::observe {
namespace {

TEST(TextPlot, DrawsFromTheTopLeftToTheBottomRight) {
  const Series falling = {.name = "loss", .points = {{1, 3}, {2, 2}, {3, 1}}};
  EXPECT_EQ(to_text(falling, {.columns = 14, .rows = 4, .unicode = false}),
            "3 ***\n"
            "     *****\n"
            "1         ****\n"
            "  1          3\n");
}

TEST(TextPlot, UsesTheDotsOfBrailleCharacters) {
  const Series falling = {.name = "loss", .points = {{0, 1}, {8, 0}}};
  EXPECT_EQ(to_text(falling, {.columns = 12, .rows = 3}),
            "1 ⠉⠒⠢⠤⣀\n"
            "0      ⠉⠒⠢⠤⣀\n"
            "  0        8\n");
}

// A constant, gaps, a single point and too little room.
TEST(TextPlot, TakesWhateverComes) {
  const double gap = std::nan("");
  EXPECT_EQ(to_text({.name = "", .points = {{1, 2}, {2, gap}, {3, 2}}},
                    {.columns = 12, .rows = 3, .unicode = false}),
            "2 **********\n"
            "\n"
            "  1        3\n");
  EXPECT_EQ(to_text({.name = "", .points = {{1, 2}}}, {}), "");
  EXPECT_EQ(to_text({.name = "", .points = {{1, gap}, {2, gap}}}, {}), "");
  EXPECT_EQ(to_text({.name = "", .points = {{1, 2}, {2, 3}}}, {.columns = 9}), "");
}

}  // namespace
}  // namespace artel::observe
