// Matrices of few bits: how far they are from the original, how they lie in files, and damage.
#include "artel/tensor/quantised.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/error.h"
#include "artel/base/random.h"

namespace artel {
namespace {

Tensor random_matrix(int64_t rows, int64_t columns) {
  Tensor matrix({rows, columns});
  Random random{7};
  for (float& x : matrix.values<float>()) x = random.normal();
  return matrix;
}

// The largest distance, in units of the range of a group divided by the number of steps.
double worst_error(const Tensor& matrix, const QuantisedMatrix& quantised) {
  const Tensor back = expand(quantised);
  double worst = 0;
  for (int64_t first = 0; first < matrix.elements(); first += quantised.group()) {
    float low = 0, high = 0;
    for (int64_t i = first; i < first + quantised.group(); ++i) {
      low = std::min(low, matrix.values<float>()[i]);
      high = std::max(high, matrix.values<float>()[i]);
    }
    const double step = quantised.bits() == 8 ? std::max(-low, high) / 127 : (high - low) / 15;
    for (int64_t i = first; i < first + quantised.group(); ++i)
      worst = std::max(worst, std::abs(matrix.values<float>()[i] - back.values<float>()[i]) / step);
  }
  return worst;
}

TEST(Quantised, IsNoFurtherThanHalfAStep) {
  const Tensor matrix = random_matrix(5, 192);
  for (const QuantiseOptions& options :
       {QuantiseOptions{8, 0}, QuantiseOptions{8, 32}, QuantiseOptions{8, 64},
        QuantiseOptions{4, 32}, QuantiseOptions{4, 64}, QuantiseOptions{4, 0}}) {
    const QuantisedMatrix quantised = quantise_rows(matrix, options);
    EXPECT_EQ(quantised.rows(), 5);
    EXPECT_EQ(quantised.columns(), 192);
    // Scales have 11 bits, which moves the ends of the range a little.
    EXPECT_LT(worst_error(matrix, quantised), 0.6) << options.bits << " " << options.group;
  }
  EXPECT_EQ(quantise_rows(matrix, {8}).group(), 192);
  EXPECT_EQ(quantise_rows(matrix, {4}).group(), 32);
  EXPECT_EQ(quantise_rows(matrix, {4, 128}).group(), 32);  // 192 is no multiple of 128
}

TEST(Quantised, KeepsZerosAndRefusesWhatItCannotStore) {
  EXPECT_EQ(expand(quantise_rows(Tensor({2, 32}), {8})).values<float>()[3], 0);
  EXPECT_EQ(expand(quantise_rows(Tensor({2, 32}), {4})).values<float>()[40], 0);
  EXPECT_THROW(quantise_rows(Tensor({2, 30}), {8}), Error);
  EXPECT_THROW(quantise_rows(Tensor({2, 32}), {5}), Error);
  EXPECT_THROW(quantise_rows(Tensor({2, 32}), {8, 48}), Error);
  Tensor bad({1, 32});
  bad.values<float>()[5] = NAN;
  EXPECT_THROW(quantise_rows(bad, {8}), Error);
}

TEST(Quantised, IsThreeTensorsInAFile) {
  const Tensor matrix = random_matrix(3, 64);
  NamedTensors file = {{"bias", Tensor({3})}};
  append(file, "w", quantise_rows(matrix, {4}));
  append(file, "v", quantise_rows(matrix, {8}));
  ASSERT_EQ(file.size(), 6);
  EXPECT_EQ(find_quantised(file, "w").bits(), 4);
  const NamedTensors numbers = expand_all(file);
  ASSERT_EQ(numbers.size(), 3);
  EXPECT_EQ(numbers[1].name, "w");
  EXPECT_EQ(numbers[1].tensor.shape(), (Shape{3, 64}));
  EXPECT_THROW(find_quantised(file, "bias"), Error);
  NamedTensors broken = file;
  broken[2].tensor = Tensor({3, 5}, DType::f16);  // w.scales
  EXPECT_THROW(find_quantised(broken, "w"), Error);
  broken[2].tensor = Tensor({3, 2});
  EXPECT_THROW(find_quantised(broken, "w"), Error);
}

}  // namespace
}  // namespace artel
