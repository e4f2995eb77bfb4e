#include "artel/train/parts/shared_weights.h"

#include <gtest/gtest.h>

#include <numeric>

#include "artel/base/pages.h"
#include "artel/tensor/tensor.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

constexpr size_t kPartFloats = 300000;  // borders lie within pages

TEST(SharedWeights, AreSeenByAllAndStayWithTheirKeeper) {
  on_workers(3, [](int rank, Cluster& cluster) {
    const std::shared_ptr<std::byte> memory = allocate(3 * kPartFloats * sizeof(float));
    const std::span<float> all(reinterpret_cast<float*>(memory.get()), 3 * kPartFloats);
    SharedWeights::Kept kept(3);
    for (size_t worker = 0; worker < 3; ++worker)
      kept[worker] = {all.subspan(worker * kPartFloats, 1000),
                      all.subspan(worker * kPartFloats + 1000, kPartFloats - 1000)};
    const std::span<float> own = all.subspan(static_cast<size_t>(rank) * kPartFloats, kPartFloats);
    std::iota(own.begin(), own.end(), static_cast<float>(rank));
    {
      SharedWeights shared(*cluster.group(), kept);
      ASSERT_TRUE(shared.works());
      for (int step = 0; step < 2; ++step) {
        shared.exchange(*cluster.group());
        for (size_t i = 0; i < all.size(); ++i)
          ASSERT_EQ(all[i], static_cast<float>(i % kPartFloats + i / kPartFloats) + step) << i;
        forget(std::as_writable_bytes(all.subspan((rank + 1) % 3 * kPartFloats, kPartFloats)));
        cluster.group()->barrier();
        for (float& value : own) value += 1;
      }
    }
    for (size_t i = 0; i < own.size(); ++i)
      ASSERT_EQ(own[i], static_cast<float>(i) + static_cast<float>(rank) + 2) << i;
  });
}

// Memory from the heap begins anywhere in a page.
TEST(SharedWeights, AreNotSharedWherePagesDiffer) {
  on_workers(2, [](int rank, Cluster& cluster) {
    const std::shared_ptr<std::byte> memory = allocate(size_t{4} << 20);
    const std::span<float> all(reinterpret_cast<float*>(memory.get()) + 16 * rank, kPartFloats);
    all[0] = 5;
    {
      const SharedWeights shared(*cluster.group(), {{all.first(9000)}, {all.subspan(9000)}});
      EXPECT_FALSE(shared.works());
    }
    EXPECT_EQ(all[0], 5);
  });
}

}  // namespace
}  // namespace artel
