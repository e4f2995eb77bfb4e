// Weights stored without their zeros.
#include "artel/predict/sparse_weights.h"

#include <gtest/gtest.h>

#include <cstring>

#include "artel/base/error.h"
#include "artel/base/random.h"

namespace artel {
namespace {

Tensor with_share_of_zeros(const Shape& shape, double zeros) {
  Tensor tensor(shape);
  Random random{static_cast<uint64_t>(shape.elements())};
  for (float& value : tensor.values<float>()) {
    const float number = random.normal();
    value = random.uniform() < static_cast<float>(zeros) ? 0 : number;
  }
  return tensor;
}

TEST(SparseWeights, ComeBackAsTheyWere) {
  NamedTensors weights = {{"a.weight", with_share_of_zeros({40, 33}, 0.9)},
                          {"a.bias", with_share_of_zeros({40}, 0.9)},
                          {"b.weight", with_share_of_zeros({16, 3, 5, 5}, 0.5)},
                          {"c.weight", with_share_of_zeros({16, 40}, 0)},
                          {"d.weight", Tensor({8, 70})}};
  weights[0].tensor.values<float>()[7] = -0.0F;
  const NamedTensors stored = without_zeros(weights);
  size_t before = 0, after = 0;
  for (const NamedTensor& each : weights) before += each.tensor.bytes();
  for (const NamedTensor& each : stored) after += each.tensor.bytes();
  EXPECT_LT(after, before * 2 / 3);
  EXPECT_NE(find_tensor(stored, "a.weight.nonzero"), nullptr);
  EXPECT_NE(find_tensor(stored, "c.weight"), nullptr);
  const NamedTensors loaded = with_zeros(stored);
  ASSERT_EQ(loaded.size(), weights.size());
  for (size_t i = 0; i < weights.size(); ++i) {
    EXPECT_EQ(loaded[i].name, weights[i].name);
    ASSERT_EQ(loaded[i].tensor.shape(), weights[i].tensor.shape());
    EXPECT_EQ(
        std::memcmp(loaded[i].tensor.raw(), weights[i].tensor.raw(), weights[i].tensor.bytes()), 0);
  }
}

TEST(SparseWeights, PartsThatDoNotFitAreNamed) {
  const NamedTensors good = without_zeros({{"w", with_share_of_zeros({40, 33}, 0.9)}});
  ASSERT_EQ(good.size(), 3U);
  const auto expect_refused = [](const NamedTensors& weights) {
    try {
      with_zeros(weights);
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::corrupt);
      EXPECT_NE(std::string(error.what()).find("'w'"), std::string::npos) << error.what();
    }
  };
  for (const size_t missing : {1, 2}) {
    NamedTensors weights = good;
    weights.erase(weights.begin() + static_cast<std::ptrdiff_t>(missing));
    expect_refused(weights);
  }
  const auto changed = [&](size_t part, const Tensor& tensor) {
    NamedTensors weights = good;
    weights[part].tensor = tensor;
    return weights;
  };
  expect_refused(changed(1, Tensor({1})));                           // too few numbers
  expect_refused(changed(1, Tensor({1320})));                        // too many
  expect_refused(changed(1, Tensor({2, 2})));                        // no list
  expect_refused(changed(2, Tensor::from<int64_t>({2}, {40, 34})));  // other extents
  expect_refused(changed(2, Tensor::from<int64_t>({2}, {40, -33})));
  expect_refused(changed(2, Tensor::from<int64_t>({2}, {int64_t{1} << 40, int64_t{1} << 40})));
  expect_refused(changed(0, Tensor({3}, DType::u8)));
}

}  // namespace
}  // namespace artel
