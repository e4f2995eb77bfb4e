#include "artel/run/report/mistakes.h"

#include <gtest/gtest.h>

#include "artel/base/bytes.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

// `count` pictures of this shape, each of one value: 0, 0.1, 0.2, ...
data::DatasetPtr flat_pictures(int64_t count, const Shape& shape) {
  Tensor x({count, shape[0], shape[1], shape[2]}), y({count}, DType::i32);
  const int64_t size = shape.elements();
  for (int64_t i = 0; i < count * size; ++i)
    x.values<float>()[static_cast<size_t>(i)] = 0.1f * static_cast<float>(i / size);
  for (int64_t i = 0; i < count; ++i) y.values<int32_t>()[static_cast<size_t>(i)] = i % 2;
  return data::tensor_dataset(x, y, 2, {"cat", "dog"});
}

uint8_t pixel(const PictureSheet& sheet, int64_t y, int64_t x) {
  return sheet.picture.samples.at(
      static_cast<size_t>((y * sheet.picture.width + x) * sheet.picture.channels));
}

TEST(MistakeSheet, HasATileForEachSample) {
  const auto set = flat_pictures(10, {3, 4, 5});
  const PictureSheet sheet = draw_samples(*set, {}, {1, 2, 3, 4, 5, 6, 7, 9});
  EXPECT_EQ(sheet.columns, 6);
  EXPECT_EQ(sheet.tile_width, 5);
  EXPECT_EQ(sheet.tile_height, 4);
  EXPECT_EQ(sheet.picture.width, 30);
  EXPECT_EQ(sheet.picture.height, 8);
  EXPECT_EQ(sheet.picture.channels, 3);
  EXPECT_EQ(pixel(sheet, 0, 0), 26);
  EXPECT_EQ(pixel(sheet, 3, 29), 153);
  EXPECT_EQ(pixel(sheet, 7, 9), 230);
  EXPECT_EQ(pixel(sheet, 4, 10), 255);  // nothing is there
  EXPECT_EQ(draw_samples(*set, {}, {3}).picture.width, 5);
}

TEST(MistakeSheet, ShowsWhatTheNetworkSeesInItsOwnColours) {
  const auto set = flat_pictures(10, {1, 6, 6});
  const auto augment = data::Augmentation::parse({"normalise 0.5 0.25", "crop 4", "flip"});
  const PictureSheet sheet = draw_samples(*set, augment, {4});
  EXPECT_EQ(sheet.tile_width, 4);
  EXPECT_EQ(pixel(sheet, 0, 0), 102);
}

// Values that were normalised before.
TEST(MistakeSheet, ValuesBeyondPixelsAreStretched) {
  Tensor x({1, 1, 1, 3}), y({1}, DType::i32);
  x.values<float>()[0] = -1;
  x.values<float>()[1] = 1;
  x.values<float>()[2] = 3;
  const PictureSheet sheet = draw_samples(*data::tensor_dataset(x, y, 2), {}, {0});
  EXPECT_EQ(sheet.picture.samples, (std::vector<uint8_t>{0, 128, 255}));
}

TEST(MistakeSheet, LargePicturesAreScaledDown) {
  const PictureSheet sheet = draw_samples(*flat_pictures(2, {1, 192, 384}), {}, {1});
  EXPECT_EQ(sheet.tile_width, 96);
  EXPECT_EQ(sheet.tile_height, 48);
  EXPECT_NEAR(pixel(sheet, 20, 50), 26, 1);
}

TEST(MistakeSheet, OnlyPicturesWithOneClassHaveOne) {
  EXPECT_TRUE(are_pictures(flat_pictures(1, {1, 2, 2})->layout()));
  EXPECT_TRUE(are_pictures(flat_pictures(1, {3, 2, 2})->layout()));
  EXPECT_FALSE(are_pictures(flat_pictures(1, {2, 2, 2})->layout()));
  EXPECT_FALSE(
      are_pictures(data::tensor_dataset(Tensor({2, 4}), Tensor({2}, DType::i32))->layout()));
  data::SampleLayout masks = flat_pictures(1, {3, 2, 2})->layout();
  masks.target = {2, 2};
  EXPECT_FALSE(are_pictures(masks));
}

TEST(MistakeSheet, IsSavedAndRemoved) {
  const TemporaryFolder folder;
  const RunFolder run(folder.path());
  const auto set = flat_pictures(10, {1, 4, 4});
  const data::Augmentation none;
  const TestedSet tested = {.set = *set, .augment = none, .part = "test", .size = 40};
  save_mistakes(run, {{.sample = 5, .label = 1, .answer = 0, .probability = 0.75}}, tested, 12);
  const auto json = nlohmann::json::parse(read_file(run.mistakes()));
  EXPECT_EQ(json, nlohmann::json::parse(R"({"step": 12, "part": "test", "columns": 1,
      "tile_width": 4, "tile_height": 4, "mistakes": [{"sample": 20, "label": "dog",
      "answer": "cat", "probability": 0.75}]})"));
  const data::Picture picture = data::decode_picture(map_file(run.mistakes_picture()));
  EXPECT_EQ(picture.samples, std::vector<uint8_t>(16, 128));
  save_mistakes(run, {}, tested, 13);
  EXPECT_FALSE(std::filesystem::exists(run.mistakes()));
  EXPECT_FALSE(std::filesystem::exists(run.mistakes_picture()));
}

}  // namespace
}  // namespace artel
