#include "artel/transfer/bases.h"

#include <gtest/gtest.h>

#include <set>

#include "artel/base/error.h"
#include "artel/nn/zoo/registry.h"
#include "artel/run/config/setup.h"

namespace artel::transfer {
namespace {

TEST(Bases, EachIsANetworkOfTheZooWithALicenceAndADigest) {
  std::set<std::string> names;
  for (const BaseDescription& base : base_list()) {
    EXPECT_TRUE(names.insert(base.name).second) << base.name;
    EXPECT_NO_THROW(nn::model_by_name(base.model.name)) << base.name;
    for (const std::string& text : {base.text, base.licence, base.source, base.trained_on})
      EXPECT_FALSE(text.empty()) << base.name;
    EXPECT_GT(base.features, 0) << base.name;
    ASSERT_FALSE(base.files.sources.empty()) << base.name;
    for (const data::Source& source : base.files.sources)
      for (const data::RemoteFile& file : source.files)
        EXPECT_EQ(file.digest.size(), 64) << base.name << " " << file.from;
  }
}

// The head is the last layer, and gets the requested number of outputs.
TEST(Bases, HeadsAreWhereTheyAreSaidToBe) {
  for (const BaseDescription& base : base_list()) {
    if (base.head.empty()) continue;
    Graph graph = inference_graph(make_model(base.model, base.model.classes),
                                  {DType::f32, {1, 3, base.pictures.size, base.pictures.size}})
                      .graph;
    const auto weight = graph.find(base.head + ".weight");
    ASSERT_TRUE(weight.has_value()) << base.name;
    EXPECT_EQ(graph.type(*weight).shape, (Shape{base.model.classes, base.features})) << base.name;
    EXPECT_EQ(graph.output("prediction").shape(), (Shape{1, base.model.classes})) << base.name;
  }
}

TEST(Bases, AnUnknownNameSuggestsTheNearest) {
  try {
    load_base("resnet5_keras");
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'resnet50_keras'"), std::string::npos)
        << error.what();
  }
}

TEST(Bases, TheTestPictureIsAFunctionOfItsSize) {
  const PictureRules rules = {.size = 8, .means = {0, 0, 0}, .deviations = {1, 1, 1}};
  const Tensor picture = test_picture(rules);
  EXPECT_EQ(picture.shape(), (Shape{1, 3, 8, 8}));
  // Blue at row 3, column 5: (2 * 5 * 3 + 3 * 1 + 15 / 16) / 255.
  EXPECT_FLOAT_EQ(picture.values<float>()[2 * 64 + 3 * 8 + 5], 33.0f / 255);
}

// Outputs of TensorFlow.js with the published weights, if `artel models get` was run.
TEST(Bases, ComputeWhatWasPublished) {
  int checked = 0;
  for (const BaseDescription& base : base_list()) {
    if (base.expected.first.empty() || !find_base_folder(base)) continue;
    const std::optional<double> difference = check_base(base);
    ASSERT_TRUE(difference.has_value());
    EXPECT_LT(*difference, 1e-4) << base.name;
    ++checked;
  }
  if (checked == 0)
    GTEST_SKIP() << "no base is on this machine; try: artel models get faces mobilenet_v2_035";
}

}  // namespace
}  // namespace artel::transfer
