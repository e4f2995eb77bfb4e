#include "artel/data/class_balance.h"

#include <gtest/gtest.h>

#include <map>

#include "artel/base/error.h"

namespace artel::data {
namespace {

// 97 of class 0, 3 of class 2; inputs are the numbers of the samples.
DatasetPtr rare_class() {
  Tensor inputs({100, 1}), labels({100}, DType::i32);
  for (int64_t i = 0; i < 100; ++i) {
    inputs.values<float>()[i] = static_cast<float>(i);
    labels.values<int32_t>()[i] = i % 33 == 5 ? 2 : 0;
  }
  return tensor_dataset(inputs, labels, 3);
}

TEST(ClassBalance, CountsAndWeights) {
  EXPECT_EQ(class_counts(*rare_class()), (std::vector<int64_t>{97, 0, 3}));
  const std::vector<double> weights = balanced_weights({97, 0, 3});
  EXPECT_DOUBLE_EQ(weights[0], 100 / (2 * 97.0));
  EXPECT_DOUBLE_EQ(weights[1], 1);
  EXPECT_DOUBLE_EQ(weights[2], 100 / (2 * 3.0));
  const DatasetPtr values = tensor_dataset(Tensor({4, 1}), Tensor({4}));
  EXPECT_THROW(class_counts(*values), Error);
}

// Every sample of the frequent class once, the three others 32 or 33 times.
TEST(ClassBalance, RepeatsRareClasses) {
  const DatasetPtr even = balanced(rare_class(), 7);
  EXPECT_EQ(class_counts(*even), (std::vector<int64_t>{97, 0, 97}));
  std::map<float, int> seen;
  for (int64_t i = 0; i < even->size(); ++i) {
    float input = 0;
    int32_t label = 0;
    even->read(i, std::as_writable_bytes(std::span(&input, 1)),
               std::as_writable_bytes(std::span(&label, 1)));
    ++seen[input];
  }
  EXPECT_EQ(seen.size(), 100u);
  for (const auto& [input, times] : seen) {
    const bool rare = static_cast<int>(input) % 33 == 5;
    EXPECT_TRUE(rare ? times == 32 || times == 33 : times == 1) << input << ": " << times;
  }
}

}  // namespace
}  // namespace artel::data
