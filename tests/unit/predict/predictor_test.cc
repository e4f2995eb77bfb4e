#include "artel/predict/predictor.h"

#include <gtest/gtest.h>

#include <cstring>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/nn/layers.h"
#include "artel/predict/batches.h"
#include "tests/support/weights.h"

namespace artel {
namespace {

Model network() {
  return nn::sequential({nn::conv(3, {3, 3}), nn::batch_norm(), nn::relu(), nn::flatten(),
                         nn::dropout(0.5), nn::dense(4)});
}

const TensorType kSample = {DType::f32, {2, 5, 5}};

NamedTensors weights() { return tests::initial_weights(network(), kSample, 1); }

Tensor rows(int64_t count) {
  Tensor x(batch_of(kSample, count).shape);
  Random random{3};
  for (float& value : x.values<float>()) value = random.normal();
  return x;
}

TEST(Predictor, GivesEachRowTheSameBitsInAnyCompanyAndOnAnyThreads) {
  Predictor one(network(), kSample, weights()), three(network(), kSample, weights(), 3);
  const Tensor x = rows(150), all = one(x);
  EXPECT_EQ(all.shape(), (Shape{150, 4}));
  const Tensor parallel = three(x), again = one(x);
  EXPECT_EQ(std::memcmp(all.raw(), parallel.raw(), all.bytes()), 0);
  EXPECT_EQ(std::memcmp(all.raw(), again.raw(), all.bytes()), 0);
  const Tensor part = one(x.rows(64, 128)), other = all.rows(64, 128);
  EXPECT_EQ(std::memcmp(part.raw(), other.raw(), part.bytes()), 0);
}

TEST(Predictor, RefusesOtherRowsAndMissingWeights) {
  Predictor predictor(network(), kSample, weights());
  EXPECT_THROW(predictor(Tensor({3, 2, 5, 6})), Error);
  EXPECT_THROW(predictor(Tensor({2, 5, 5})), Error);
  EXPECT_THROW(predictor(Tensor({3, 2, 5, 5}, DType::i32)), Error);
  NamedTensors few = weights();
  few.pop_back();
  EXPECT_THROW(Predictor(network(), kSample, few), Error);
}

TEST(Predictor, RefusesQuantisedWeights) {
  NamedTensors quantised = weights();
  quantised.back().tensor = Tensor(quantised.back().tensor.shape(), DType::i8);
  try {
    Predictor(network(), kSample, quantised);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("has the type i8 of a quantised network"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace artel
