#include "artel/transfer/features.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "artel/base/error.h"
#include "artel/transfer/small_predictor.h"
#include "tests/support/error_of.h"
#include "tests/unit/transfer/trained_base.h"

namespace artel::transfer {
namespace {

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.shape() == b.shape() && std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

TEST(Features, AreWhatTheLayersComputeOnAnyNumberOfThreads) {
  const TrainedBase trained("features");
  const BaseNetwork base = open_base({.name = trained.base()});
  EXPECT_EQ(base.classes, 4);
  const DataConfig data = data_for(base, "dark_spots");
  const FeatureRequest request = {.layers = {"2", "before 7", "7"}};
  const Features one = extract(base, data, request, 1);
  const Features three = extract(base, data, request, 3);
  ASSERT_EQ(one.train.layers.size(), 3u);
  EXPECT_EQ(one.train.layers[0].shape(), (Shape{200, 8}));  // means of the maps
  EXPECT_EQ(one.train.layers[1].shape(), (Shape{200, 72}));
  EXPECT_EQ(one.train.layers[2].shape(), (Shape{200, 4}));
  EXPECT_EQ(one.test.layers[2].shape(), (Shape{90, 4}));
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_TRUE(same_bits(one.train.layers[i], three.train.layers[i])) << i;
    EXPECT_TRUE(same_bits(one.test.layers[i], three.test.layers[i])) << i;
  }
  // The last layer is the network's own answer.
  artel::Run run = artel::Run::open(trained.base());
  ThreadPool pool(1);
  know_spots();
  const Tensor rows = read_rows(*spots(200, 3, true, 3), {}, 0, 64, pool);
  const Tensor answers = run.predict(rows);
  for (int64_t i = 0; i < answers.elements(); ++i)
    EXPECT_NEAR(answers.values<float>()[i], one.train.layers[2].values<float>()[i], 1e-5);
  // Whole maps on request.
  const Features whole = extract(base, data, {.layers = {"2"}, .pooling = Pooling::whole}, 2);
  EXPECT_EQ(whole.train.layers[0].shape(), (Shape{200, 8, 10, 10}));
}

TEST(Features, AreTheSameAfterTheyWereSavedAndMakeModelsForNewSamples) {
  const TrainedBase trained("saved_features");
  const BaseNetwork base = open_base({.name = trained.base()});
  const Features features = extract(base, data_for(base, "dark_spots"), {}, 2);
  EXPECT_EQ(features.request.layers, std::vector<std::string>{"before 7"});
  features.save(trained.at("features.npz"));
  const Features loaded = Features::load(trained.at("features.npz"));
  EXPECT_TRUE(same_bits(loaded.train.layers[0], features.train.layers[0]));
  EXPECT_TRUE(same_bits(loaded.test.targets, features.test.targets));
  EXPECT_EQ(loaded.class_names, features.class_names);
  const SmallModel model = fit_small("linear", loaded, {.threads = 2});
  EXPECT_GT(judge(model, loaded.test).accuracy, 0.9);
  model.save(trained.at("model"));
  SmallPredictor predictor(trained.at("model"), 2);
  const Tensor scores = predictor.scores_of(trained.at("features.npz"));
  EXPECT_EQ(scores.shape(), (Shape{90, 3}));
  EXPECT_EQ(predictor.layout().class_names[2], "dark2");
}

TEST(Features, JoinTheColumnsOfATable) {
  Features features;
  features.train.layers = {Tensor({2, 3})};
  features.train.names = {"pets/cat/a.jpg", "pets/dog/b.jpg"};
  features.test.layers = {Tensor({1, 3})};
  features.test.names = {"pets/dog/c.jpg"};
  const auto file = std::filesystem::temp_directory_path() / "artel_join_test.csv";
  std::ofstream(file) << "file,age,coat\nb.jpg,7,long\ncat/a.jpg,3,short\nc.jpg,?,long\n";
  join_columns(features, file, "file");
  EXPECT_EQ(features.columns, (std::vector<std::string>{"age", "coat=long", "coat=short"}));
  ASSERT_EQ(features.train.layers.size(), 2u);
  const auto joined = features.train.layers[1].values<float>();
  EXPECT_EQ(std::vector<float>(joined.begin(), joined.end()),
            (std::vector<float>{3, 0, 1, 7, 1, 0}));
  EXPECT_EQ(features.test.layers[1].values<float>()[0], 5);  // the mean of those that are known
  EXPECT_EQ(Features::rows(features.train).shape(), (Shape{2, 6}));
  features.train.names[0] = "pets/cat/d.jpg";
  EXPECT_NE(
      artel::error_of([&] { join_columns(features, file, "file"); }).find("lacks 1 of 3 samples"),
      std::string::npos);
  EXPECT_NE(
      artel::error_of([&] { join_columns(features, file, "fil"); }).find("did you mean 'file'"),
      std::string::npos);
  std::filesystem::remove(file);
}

TEST(Features, OfLayersAndBasesThatDoNotExistAreRefused) {
  const TrainedBase trained("wrong_features");
  const BaseNetwork base = open_base({.name = trained.base()});
  const DataConfig data = data_for(base, "dark_spots");
  EXPECT_NE(
      artel::error_of([&] { extract(base, data, {.layers = {"17"}}, 1); }).find("no such layer"),
      std::string::npos);
  EXPECT_NE(artel::error_of([&] { open_base({.name = "lenet5"}); }).find("without weights"),
            std::string::npos);
  EXPECT_NE(artel::error_of([&] { open_base({.name = "no/such"}); }).find("no such base"),
            std::string::npos);
  EXPECT_NE(artel::error_of([&] { data_for(base, "fashion_mnits"); }).find("'fashion_mnist'"),
            std::string::npos);
}

}  // namespace
}  // namespace artel::transfer
