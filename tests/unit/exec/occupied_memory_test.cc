#include "artel/exec/occupied_memory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "artel/base/random.h"

namespace artel {
namespace {

struct Taken {
  int first, last;
  size_t begin, end;
};

// The lowest free offset by looking at everything that is taken.
size_t plain_lowest_free(const std::vector<Taken>& all, int first, int last, size_t bytes) {
  size_t offset = 0;
  for (bool moved = bytes > 0; moved;) {
    moved = false;
    for (const Taken& t : all) {
      if (t.last < first || last < t.first) continue;
      if (t.end <= offset || t.begin >= offset + bytes) continue;
      offset = t.end;
      moved = true;
    }
  }
  return offset;
}

TEST(OccupiedMemory, FindsTheLowestPlaceThatIsFreeAllTheTime) {
  for (const int times : {1, 2, 7, 64, 100}) {
    Random random{static_cast<uint64_t>(times)};
    const auto below = [&](int n) {
      return static_cast<int>(random.below(static_cast<uint64_t>(n)));
    };
    for (int round = 0; round < 20; ++round) {
      OccupiedMemory memory(times);
      std::vector<Taken> all;
      for (int i = 0; i < 60; ++i) {
        const int a = below(times), b = below(times);
        const int first = std::min(a, b), last = round % 2 == 0 ? std::max(a, b) : first;
        const auto bytes = static_cast<size_t>(64 * below(round % 3 == 0 ? 2 : 9));
        const size_t offset = memory.lowest_free(first, last, bytes);
        ASSERT_EQ(offset, plain_lowest_free(all, first, last, bytes));
        memory.take(first, last, offset, offset + bytes);
        all.push_back({first, last, offset, offset + bytes});
      }
    }
  }
}

}  // namespace
}  // namespace artel
