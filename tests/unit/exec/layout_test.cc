// Tensors that lie in memory shard by shard.
#include "artel/exec/plan/layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

#include "artel/base/thread_pool.h"

namespace artel {
namespace {

Tensor counting(const Shape& shape) {
  Tensor tensor(shape);
  std::iota(tensor.values<float>().begin(), tensor.values<float>().end(), 1.0f);
  return tensor;
}

struct SplitCase {
  Shape shape;
  Layout layout;
};

std::vector<SplitCase> split_cases() {
  std::vector<SplitCase> cases;
  for (const int shards : {2, 3, 5})
    for (const int axis : {0, 1})
      for (const int blocks : {1, 3}) {
        cases.push_back({{15, 21}, {{}, {axis, blocks, shards}}});
        cases.push_back({{15, 21}, {{1, 0}, {axis, blocks, shards}}});
        cases.push_back({{15, 6, 3, 2}, {{2, 3, 1, 0}, {axis, blocks, shards}}});
      }
  return cases;
}

TEST(Layout, ShardsFollowEachOtherInMemory) {
  ThreadPool pool(1);
  for (const SplitCase& c : split_cases()) {
    const Tensor whole = counting(c.shape);
    std::vector<float> memory(static_cast<size_t>(c.shape.elements()), 0);
    convert_layout(pool, c.shape, DType::f32, whole.raw(), {},
                   reinterpret_cast<std::byte*>(memory.data()), c.layout);
    // Each shard by itself, cut out range by range.
    for (int shard = 0; shard < c.layout.split.shards; ++shard) {
      const Shape shape = shard_shape(c.shape, c.layout.split, shard);
      const float* own = memory.data() + shard_begin(c.shape, c.layout.split, shard);
      const std::vector<int64_t> strides = strides_of(shape, {c.layout.order});
      const std::vector<int64_t> all = row_major_strides(c.shape);
      const int axis = c.layout.split.axis;
      for (const SplitRange& range : ranges_of(c.shape, c.layout.split)) {
        if (range.shard != shard) continue;
        for (int64_t i = 0; i < range.extent; ++i)
          EXPECT_EQ(own[(range.own + i) * strides[static_cast<size_t>(axis)]],
                    whole.values<float>()[static_cast<size_t>((range.begin + i) *
                                                              all[static_cast<size_t>(axis)])]);
      }
    }
    Tensor back(c.shape);
    convert_layout(pool, c.shape, DType::f32, reinterpret_cast<const std::byte*>(memory.data()),
                   c.layout, back.raw(), {});
    EXPECT_EQ(std::memcmp(back.raw(), whole.raw(), whole.bytes()), 0);

    std::vector<float> written;
    source_of("w", c.shape, c.layout, memory).give([&](std::span<const std::byte> bytes) {
      const size_t old = written.size();
      written.resize(old + bytes.size() / sizeof(float));
      std::memcpy(written.data() + old, bytes.data(), bytes.size());
    });
    ASSERT_EQ(written.size(), memory.size());
    EXPECT_EQ(std::memcmp(written.data(), whole.raw(), whole.bytes()), 0);
  }
}

TEST(Layout, ShardsOfRowsLieAsTheWholeDoes) {
  EXPECT_TRUE(same_memory({15, 21}, {{}, {0, 1, 4}}, {}));
  EXPECT_FALSE(same_memory({15, 21}, {{}, {0, 3, 4}}, {}));
  EXPECT_FALSE(same_memory({15, 21}, {{}, {1, 1, 3}}, {}));
}

}  // namespace
}  // namespace artel
