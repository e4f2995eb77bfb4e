#include "artel/data/images/augment.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "artel/base/error.h"
#include "artel/data/images/resize.h"

namespace artel::data {
namespace {

// Pixel values 1, 2, 3, ...
Image counting(int64_t channels, int64_t height, int64_t width) {
  Image image(channels, height, width);
  std::iota(image.pixels.begin(), image.pixels.end(), 1.0f);
  return image;
}

Image changed(const std::string& text, Image image, uint64_t key) {
  Random random{key};
  const Augmentation pipeline = Augmentation::parse({text});
  const Shape expected = pipeline.output_shape(image.shape());
  pipeline.apply(image, random);
  EXPECT_EQ(image.shape(), expected) << text;
  return image;
}

TEST(Augment, CropMovesTheImageByAtMostThePadding) {
  std::set<float> corners;
  for (uint64_t key = 0; key < 200; ++key)
    corners.insert(changed("crop 2 1", counting(1, 2, 2), key).pixels[0]);
  // The corner is any of the four pixels or the padding.
  EXPECT_EQ(corners, (std::set<float>{0, 1, 2, 3, 4}));
}

TEST(Augment, FlipMirrorsHalfOfTheImages) {
  int flipped = 0;
  for (uint64_t key = 0; key < 400; ++key) {
    const Image image = changed("flip", counting(2, 1, 3), key);
    if (image.pixels[0] == 1) continue;
    ++flipped;
    EXPECT_EQ(image.pixels, (std::vector<float>{3, 2, 1, 6, 5, 4}));
  }
  EXPECT_NEAR(flipped, 200, 50);
}

TEST(Augment, NormaliseWorksOnEachChannel) {
  const Image image = changed("normalise 1 2 0.5 2", counting(2, 1, 2), 0);
  EXPECT_EQ(image.pixels, (std::vector<float>{0, 2, 0.5f, 1}));
}

TEST(Augment, ChannelsMakeGreyOfColourAndBack) {
  EXPECT_EQ(changed("channels 3", counting(1, 1, 2), 0).pixels,
            (std::vector<float>{1, 2, 1, 2, 1, 2}));
  const Image grey = changed("channels 1", counting(3, 1, 1), 0);
  ASSERT_EQ(grey.pixels.size(), 1u);
  EXPECT_NEAR(grey.pixels[0], 0.299f + 2 * 0.587f + 3 * 0.114f, 1e-6f);
  EXPECT_EQ(changed("channels 3", counting(3, 1, 1), 0).pixels, counting(3, 1, 1).pixels);
  EXPECT_THROW(Augmentation::parse({"channels 2"}), Error);
}

TEST(Augment, CutoutClearsASquare) {
  const Image image = changed("cutout 2", counting(1, 8, 8), 3);
  const auto zeros = std::count(image.pixels.begin(), image.pixels.end(), 0.0f);
  EXPECT_GE(zeros, 1);
  EXPECT_LE(zeros, 4);
}

TEST(Augment, JitterStaysInRange) {
  Image image(3, 4, 4);
  for (size_t i = 0; i < image.pixels.size(); ++i)
    image.pixels[i] = static_cast<float>(i) / static_cast<float>(image.pixels.size());
  const Image other = changed("jitter 0.4 0.4 0.4", image, 1);
  EXPECT_NE(other.pixels, image.pixels);
  for (const float pixel : other.pixels) {
    EXPECT_GE(pixel, 0);
    EXPECT_LE(pixel, 1);
  }
}

TEST(Augment, ResizeKeepsConstantsMeansAndRamps) {
  Image flat(1, 5, 7);
  std::fill(flat.pixels.begin(), flat.pixels.end(), 0.25f);
  for (const float pixel : resized(flat, 13, 3).pixels) EXPECT_NEAR(pixel, 0.25f, 1e-6);
  // Twice as wide: interpolated between neighbours, constant beyond the outermost centres.
  const Image wide = resized(counting(1, 1, 2), 1, 4);
  EXPECT_NEAR(wide.pixels[0], 1.0f, 1e-6);
  EXPECT_NEAR(wide.pixels[1], 1.25f, 1e-6);
  EXPECT_NEAR(wide.pixels[2], 1.75f, 1e-6);
  // Half as high: the filter spans four rows with the weights 1 3 3 1.
  const Image ramp = resized(counting(1, 8, 1), 4, 1);
  EXPECT_NEAR(ramp.pixels[1], 3.5f, 1e-5);
}

// Pixel by pixel, with the weights of both directions multiplied.
Image plainly_resized(const Image& image, int64_t height, int64_t width) {
  const auto weight = [](int64_t from, int64_t to, int64_t source, int64_t target) {
    const double scale = static_cast<double>(from) / static_cast<double>(to);
    const double centre = (static_cast<double>(target) + 0.5) * scale;
    const double distance = std::abs(static_cast<double>(source) + 0.5 - centre);
    return std::max(0.0, 1 - distance / std::max(1.0, scale));
  };
  Image result(image.channels, height, width);
  for (int64_t c = 0; c < image.channels; ++c)
    for (int64_t y = 0; y < height; ++y)
      for (int64_t x = 0; x < width; ++x) {
        double sum = 0, weights = 0;
        for (int64_t j = 0; j < image.height; ++j)
          for (int64_t i = 0; i < image.width; ++i) {
            const double both =
                weight(image.height, height, j, y) * weight(image.width, width, i, x);
            sum += both * image.row(c, j)[i];
            weights += both;
          }
        result.row(c, y)[x] = static_cast<float>(sum / weights);
      }
  return result;
}

TEST(Augment, ResizeMatchesAPlainReference) {
  Random random(3);
  for (int round = 0; round < 40; ++round) {
    const auto side = [&](int64_t most) { return 1 + static_cast<int64_t>(random.below(most)); };
    Picture picture{side(30), side(30), random.below(2) ? 3 : 1, {}};
    picture.samples.resize(static_cast<size_t>(picture.height * picture.width * picture.channels));
    for (uint8_t& sample : picture.samples) sample = static_cast<uint8_t>(random.below(256));
    const Image image = to_image(picture);
    const int64_t height = side(40), width = side(40);
    const Image found = resized(image, height, width);
    const Image expected = plainly_resized(image, height, width);
    for (size_t i = 0; i < found.pixels.size(); ++i)
      ASSERT_NEAR(found.pixels[i], expected.pixels[i], 1e-5)
          << picture.width << "x" << picture.height << " to " << width << "x" << height;
    // A part of a scaled picture is the same as of the whole, from floats and from bytes.
    const double scale = std::max(static_cast<double>(height) / static_cast<double>(image.height),
                                  static_cast<double>(width) / static_cast<double>(image.width));
    const auto scaled = [&](int64_t extent, int64_t least) {
      return std::max(least, int64_t{std::llround(static_cast<double>(extent) * scale)});
    };
    const Image whole = resized(image, scaled(image.height, height), scaled(image.width, width));
    const Image middle =
        window(whole, (whole.height - height) / 2, (whole.width - width) / 2, height, width);
    EXPECT_EQ(covering(image, height, width).pixels, middle.pixels);
    EXPECT_EQ(covering(picture, height, width).pixels, middle.pixels);
  }
}

TEST(Augment, RotateKeepsTheMiddleAndTurnsTheRest) {
  EXPECT_EQ(changed("rotate 0", counting(2, 5, 4), 1).pixels, counting(2, 5, 4).pixels);
  bool moved = false;
  for (uint64_t key = 0; key < 20; ++key) {
    const Image image = changed("rotate 30", counting(1, 5, 5), key);
    EXPECT_NEAR(image.row(0, 2)[2], 13, 1e-4);
    moved = moved || std::abs(image.row(0, 0)[2] - 3) > 0.5f;
  }
  EXPECT_TRUE(moved);
  Image round(1, 41, 41);  // a disc stays as it is
  for (int64_t y = 0; y < 41; ++y)
    for (int64_t x = 0; x < 41; ++x)
      round.row(0, y)[x] =
          std::exp(-static_cast<float>((y - 20) * (y - 20) + (x - 20) * (x - 20)) / 50);
  const Image turned = changed("rotate 180", round, 3);
  for (size_t i = 0; i < round.pixels.size(); ++i)
    EXPECT_NEAR(turned.pixels[i], round.pixels[i], 0.02f);
}

TEST(Augment, ResizedCropShowsPartsOfTheImage) {
  std::set<float> corners;
  for (uint64_t key = 0; key < 50; ++key) {
    const Image image = changed("resized_crop 4", counting(1, 20, 30), key);
    corners.insert(image.pixels[0]);
    for (const float pixel : image.pixels) EXPECT_TRUE(pixel >= 1 && pixel <= 600) << pixel;
    EXPECT_LT(image.row(0, 0)[0], image.row(0, 3)[3]);  // upright
  }
  EXPECT_GT(corners.size(), 40u);
  const Augmentation testing = Augmentation::parse({"resized_crop 4 0.5"}).for_testing();
  EXPECT_EQ(testing.transforms.at(0).text, "cover 4");
  EXPECT_EQ(changed("cover 20", counting(1, 20, 30), 0).pixels[0], 6);
}

TEST(Augment, EraseClearsARectangle) {
  int erased = 0;
  for (uint64_t key = 0; key < 200; ++key) {
    const Image image = changed("erase 0.5", counting(1, 20, 20), key);
    const auto zeros = std::count(image.pixels.begin(), image.pixels.end(), 0.0f);
    erased += zeros > 0;
    EXPECT_LE(zeros, 150);
  }
  EXPECT_NEAR(erased, 100, 30);
  EXPECT_EQ(changed("erase 0", counting(1, 4, 4), 0).pixels, counting(1, 4, 4).pixels);
}

TEST(Augment, TestPipelineHasNoChance) {
  const Augmentation pipeline =
      Augmentation::parse({"resize 10", "crop 8", "flip", "normalise 0 1", "mixup 0.2"});
  const Augmentation testing = pipeline.for_testing();
  EXPECT_EQ(testing.mixup, 0);
  ASSERT_EQ(testing.transforms.size(), 3u);
  EXPECT_EQ(testing.transforms[0].text, "resize 10 10");
  EXPECT_EQ(testing.transforms[1].text, "centre_crop 8");
  EXPECT_EQ(testing.transforms[2].text, "normalise 0 1");
  ASSERT_EQ(pipeline.for_viewing().transforms.size(), 2u);
  EXPECT_EQ(pipeline.for_viewing().transforms[1].text, "centre_crop 8");
  EXPECT_EQ(Augmentation::parse({"crop 32 4"}).for_testing().output_shape({3, 32, 32}),
            (Shape{3, 32, 32}));
}

TEST(Augment, WhatFitsInTrainingFitsInTests) {
  const Augmentation pipeline = Augmentation::parse({"crop 6 2"});
  EXPECT_EQ(pipeline.output_shape({1, 4, 5}), (Shape{1, 6, 6}));
  const Augmentation testing = pipeline.for_testing();
  EXPECT_EQ(testing.output_shape({1, 4, 5}), (Shape{1, 6, 6}));
  Image image = counting(1, 4, 4);
  const Image before = image;
  Random unused({0});
  testing.apply(image, unused);
  ASSERT_EQ(image.shape(), (Shape{1, 6, 6}));
  for (int64_t y = 0; y < 6; ++y)
    for (int64_t x = 0; x < 6; ++x) {
      const bool border = y == 0 || x == 0 || y == 5 || x == 5;
      EXPECT_EQ(image.row(0, y)[x], border ? 0 : before.row(0, y - 1)[x - 1]) << y << ", " << x;
    }
  EXPECT_THROW(pipeline.output_shape({1, 1, 1}), Error);
  EXPECT_THROW(testing.output_shape({1, 1, 1}), Error);
}

TEST(Augment, TextComesBack) {
  for (const char* text :
       {"crop 32 4", "flip", "normalise 0.13 0.31", "resize 8 9", "jitter 0.1 0.2 0.3", "cutout 8",
        "centre_crop 4", "rotate 15", "resized_crop 8 0.5", "cover 9", "erase 0.25"})
    EXPECT_EQ(Augmentation::parse({text}).transforms.at(0).text, text);
}

TEST(Augment, RefusesBadText) {
  for (const char* text : {"crop", "crop x", "crop 1.5", "flip 3", "normalise 1", "normalise 1 0",
                           "jitter 2", "mixup", "mixup 0", "cutout -1", "", "crop nan", "rotate",
                           "rotate 200", "resized_crop 4 0", "erase 2", "cover"})
    EXPECT_THROW(Augmentation::parse({text}), Error) << text;
  try {
    Augmentation::parse({"filp"});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "unknown augmentation 'filp'; did you mean 'flip'?");
  }
  EXPECT_THROW(Augmentation::parse({"crop 40 2"}).output_shape({3, 32, 32}), Error);
  EXPECT_THROW(Augmentation::parse({"normalise 1 2 1 1"}).output_shape({3, 32, 32}), Error);
  EXPECT_THROW(Augmentation::parse({"flip"}).output_shape({784}), Error);
}

TEST(Augment, BetaHasItsMoments) {
  for (const double strength : {0.2, 1.0, 3.0}) {
    Random random{7};
    double sum = 0, squares = 0;
    constexpr int kCount = 20000;
    for (int i = 0; i < kCount; ++i) {
      const double x = beta(random, strength);
      sum += x;
      squares += (x - 0.5) * (x - 0.5);
    }
    EXPECT_NEAR(sum / kCount, 0.5, 0.01);
    EXPECT_NEAR(squares / kCount, 1 / (4 * (2 * strength + 1)), 0.01);
  }
}

}  // namespace
}  // namespace artel::data
