#include "artel/transfer/small_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "artel/base/error.h"
#include "artel/base/random.h"
#include "artel/transfer/linear_fit.h"

namespace artel::transfer {
namespace {

// Clouds around one point for each class; of the last number, which is constant, nothing is learnt.
Features clouds(int64_t samples, int64_t classes, float spread) {
  constexpr int64_t kNumbers = 6;
  Random random{7};
  std::vector<float> centres(static_cast<size_t>(classes * kNumbers));
  for (float& value : centres) value = random.normal();
  Features features = {.classes = classes};
  for (FeaturePart* part : {&features.train, &features.test}) {
    Tensor rows({samples, kNumbers}), labels({samples}, DType::i32);
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t label = i % classes;
      labels.values<int32_t>()[i] = static_cast<int32_t>(label);
      for (int64_t j = 0; j < kNumbers; ++j)
        rows.values<float>()[i * kNumbers + j] =
            j + 1 == kNumbers ? 3.0f : centres[label * kNumbers + j] + spread * random.normal();
    }
    part->layers = {rows};
    part->targets = labels;
  }
  return features;
}

TEST(SmallModel, EachKindTellsCloudsApart) {
  const Features features = clouds(300, 4, 0.3f);
  for (const char* kind : {"linear", "knn", "centroid"}) {
    const SmallModel model = fit_small(kind, features, {.threads = 2});
    EXPECT_GT(judge(model, features.test).accuracy, 0.95) << kind;
  }
}

TEST(SmallModel, ThePenaltyIsChosenByWhatWasHeldOut) {
  const Features features = clouds(60, 3, 1.5f);
  const SmallModel model = fit_small("linear", features, {});
  ASSERT_EQ(model.tried.size(), 7u);
  for (const Tried& tried : model.tried)
    EXPECT_GE(tried.loss, std::ranges::min_element(model.tried, {}, &Tried::loss)->loss);
  EXPECT_EQ(model.choice, std::ranges::min_element(model.tried, {}, &Tried::loss)->choice);
  EXPECT_GT(model.choice, 1e-6);  // without a penalty, so few samples are learnt by heart
}

TEST(SmallModel, BitsDoNotDependOnThreads) {
  const Features features = clouds(5000, 3, 1);
  const SmallModel one = fit_small("linear", features, {.threads = 1, .l2 = {1e-3}});
  const SmallModel three = fit_small("linear", features, {.threads = 3, .l2 = {1e-3}});
  EXPECT_EQ(std::memcmp(one.weights.raw(), three.weights.raw(), one.weights.bytes()), 0);
}

TEST(SmallModel, LinearFitsAreWhereTheGradientIsZero) {
  // Ridge regression has a closed form: with one number, w = sum(xy) / (sum(xx) + n l2).
  const Tensor x = Tensor::from<float>({4, 1}, {-1.5f, -0.5f, 0.5f, 1.5f});
  const Tensor y = Tensor::from<float>({4}, {-2, -1, 1, 2});
  const LinearFit fit = LinearFitter(x, y, 1, 1).fit(0.1);
  EXPECT_NEAR(fit.weights.values<float>()[0], 7.0 / (5.0 + 4 * 0.1), 1e-4);
  EXPECT_NEAR(fit.bias.values<float>()[0], 0, 1e-5);
}

TEST(SmallModel, ValuesAreLearntInTheirUnit) {
  Features features = clouds(200, 2, 1);
  features.classes = 0;
  for (FeaturePart* part : {&features.train, &features.test}) {
    part->targets = Tensor({200});
    for (int64_t i = 0; i < 200; ++i)
      part->targets.values<float>()[i] = 1000 + 50 * part->layers[0].values<float>()[i * 6] -
                                         20 * part->layers[0].values<float>()[i * 6 + 1];
  }
  const SmallModel model = fit_small("linear", features, {});
  EXPECT_LT(judge(model, features.test).loss, 1);
  EXPECT_THROW(fit_small("knn", features, {}), Error);
}

TEST(SmallModel, IsTheSameAfterItWasSaved) {
  const Features features = clouds(100, 3, 0.5f);
  const auto folder = std::filesystem::temp_directory_path() / "artel_small_model_test";
  for (const char* kind : {"linear", "knn", "centroid"}) {
    const SmallModel model = fit_small(kind, features, {});
    model.save(folder);
    EXPECT_TRUE(is_small_model(folder));
    const Tensor rows = Features::rows(features.test);
    const Tensor before = model.scores(rows), after = SmallModel::load(folder).scores(rows);
    EXPECT_EQ(std::memcmp(before.raw(), after.raw(), before.bytes()), 0) << kind;
  }
  std::filesystem::remove_all(folder);
}

TEST(SmallModel, RefusesWhatCannotBeLearnt) {
  Features features = clouds(20, 2, 1);
  EXPECT_THROW(fit_small("forest", features, {}), Error);
  features.classes = 1;
  EXPECT_THROW(fit_small("linear", features, {}), Error);
  features = clouds(20, 2, 1);
  features.train.layers[0].values<float>()[3] = std::nanf("");
  EXPECT_THROW(fit_small("linear", features, {}), Error);
  features = clouds(20, 2, 1);
  features.train.targets = {};
  EXPECT_THROW(fit_small("linear", features, {}), Error);
}

}  // namespace
}  // namespace artel::transfer
