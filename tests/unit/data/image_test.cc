#include "artel/data/images/image.h"

#include <gtest/gtest.h>

#include <array>

#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/data/images/cifar.h"
#include "artel/data/images/image_folder.h"
#include "artel/data/sets.h"
#include "tests/support/pictures.h"
#include "tests/support/samples.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

// A ramp of bytes.
std::vector<uint8_t> ramp(size_t size) {
  std::vector<uint8_t> samples(size);
  for (size_t i = 0; i < size; ++i) samples[i] = static_cast<uint8_t>(i * 7);
  return samples;
}

TEST(Picture, PngIsExact) {
  for (const int channels : {1, 3}) {
    const auto samples = ramp(static_cast<size_t>(5 * 4 * channels));
    const Picture picture = decode_picture(make_bytes(png(5, 4, channels, samples), "x"));
    EXPECT_EQ(picture.height, 5);
    EXPECT_EQ(picture.width, 4);
    EXPECT_EQ(picture.channels, channels);
    EXPECT_EQ(picture.samples, samples);
  }
}

TEST(Picture, WhatIsEncodedComesBack) {
  for (const int channels : {1, 3}) {
    const Picture before{5, 4, channels, ramp(static_cast<size_t>(5 * 4 * channels))};
    const Picture after = decode_picture(make_bytes(encode_png(before), "x"));
    EXPECT_EQ(after.height, 5);
    EXPECT_EQ(after.width, 4);
    EXPECT_EQ(after.channels, channels);
    EXPECT_EQ(after.samples, before.samples);
  }
  EXPECT_THROW(encode_png({1, 1, 2, {0, 0}}), Error);
  EXPECT_THROW(encode_png({0, 0, 1, {}}), Error);
}

TEST(Picture, JpegIsNearAndShrinks) {
  const std::vector<uint8_t> samples(64 * 48, 100);
  const Bytes file = make_bytes(jpeg(64, 48, 1, samples), "x");
  const Picture picture = decode_picture(file);
  EXPECT_EQ(picture.channels, 1);
  for (const uint8_t sample : picture.samples) EXPECT_NEAR(sample, 100, 2);
  const Picture small = decode_picture(file, 3, 12);
  EXPECT_EQ(small.height, 16);
  EXPECT_EQ(small.width, 12);
  EXPECT_EQ(small.samples.size(), 16u * 12 * 3);
}

TEST(Picture, InksBecomeColours) {
  std::vector<uint8_t> inks;  // little yellow, no other ink, and a fifth of black
  for (int i = 0; i < 16 * 16; ++i) inks.insert(inks.end(), {255, 255, 155, 204});
  const Bytes file = make_bytes(jpeg(16, 16, 4, inks), "x");
  const Picture colour = decode_picture(file);
  EXPECT_EQ(colour.channels, 3);
  EXPECT_NEAR(colour.samples[0], 204, 2);
  EXPECT_NEAR(colour.samples[2], 124, 2);
  const Picture grey = decode_picture(file, 1);
  ASSERT_EQ(grey.samples.size(), 16u * 16);
  EXPECT_NEAR(grey.samples[100], 195, 2);
}

std::string from_hex(const std::string& digits) {
  std::string bytes;
  for (size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return bytes;
}

TEST(Picture, PngIsWhatPillowMakesOfIt) {
  for (const auto& golden : nlohmann::json::parse(read_file(ARTEL_GOLDEN_DIR "/pictures.json"))) {
    const std::string name = golden.at("name");
    const Bytes file = make_bytes(from_hex(golden.at("file")), name);
    EXPECT_EQ(picture_size(file), (PictureSize{golden.at("height"), golden.at("width")})) << name;
    for (const int channels : {1, 3}) {
      const std::string expected = from_hex(golden.at(channels == 1 ? "grey" : "colour"));
      const Picture picture = decode_picture(file, channels);
      EXPECT_EQ(std::string(picture.samples.begin(), picture.samples.end()), expected)
          << name << ", " << channels << " channels";
    }
  }
}

TEST(Picture, GreyIsTheSameFromPngAndJpeg) {
  for (const std::array<uint8_t, 3>& colour :
       {std::array<uint8_t, 3>{200, 30, 40}, {20, 220, 60}, {10, 20, 250}, {128, 0, 128}}) {
    std::vector<uint8_t> samples;
    for (int i = 0; i < 16 * 16; ++i) samples.insert(samples.end(), colour.begin(), colour.end());
    const double grey = 0.299 * colour[0] + 0.587 * colour[1] + 0.114 * colour[2];
    for (const std::string& file : {png(16, 16, 3, samples), jpeg(16, 16, 3, samples)})
      EXPECT_NEAR(decode_picture(make_bytes(file, "x"), 1).samples[100], grey, 1.5);
  }
}

// A JPEG file with EXIF data that says how the camera was held.
std::string with_orientation(const std::string& jpeg, int orientation) {
  using namespace std::string_literals;
  const std::string exif = "Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"s +
                           static_cast<char>(orientation) + "\0\0\0\0\0\0"s;
  const std::string segment = "\xff\xe1\0"s + static_cast<char>(exif.size() + 2) + exif;
  return jpeg.substr(0, 2) + segment + jpeg.substr(2);
}

TEST(Picture, PhotographsAreTurnedUpright) {
  // Stored: a dark left half with a black corner at its top, a light right half.
  constexpr int64_t kHeight = 16, kWidth = 32;
  std::vector<uint8_t> stored(kHeight * kWidth, 200);
  for (int64_t y = 0; y < kHeight; ++y)
    for (int64_t x = 0; x < kWidth / 2; ++x) stored[y * kWidth + x] = y < kHeight / 2 ? 0 : 100;
  const std::string file = jpeg(kHeight, kWidth, 1, stored);
  // Top left, top right, bottom left, bottom right of the upright picture.
  const std::vector<std::array<int, 4>> corners = {
      {0, 200, 100, 200}, {200, 0, 200, 100}, {200, 100, 200, 0}, {100, 200, 0, 200},
      {0, 100, 200, 200}, {100, 0, 200, 200}, {200, 200, 100, 0}, {200, 200, 0, 100}};
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Bytes turned = make_bytes(with_orientation(file, orientation), "x");
    const Picture picture = decode_picture(turned);
    EXPECT_EQ(picture.height, orientation < 5 ? kHeight : kWidth) << orientation;
    EXPECT_EQ(picture.width, orientation < 5 ? kWidth : kHeight) << orientation;
    EXPECT_EQ(picture_size(turned), (PictureSize{picture.height, picture.width})) << orientation;
    const auto at = [&](int64_t y, int64_t x) { return picture.samples[y * picture.width + x]; };
    const int64_t bottom = picture.height - 1, right = picture.width - 1;
    const std::array<int, 4> found = {at(0, 0), at(0, right), at(bottom, 0), at(bottom, right)};
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_NEAR(found[i], corners[orientation - 1][i], 8) << orientation << ", corner " << i;
  }
  // Invalid orientations and invalid EXIF data change nothing.
  for (const std::string& odd : {with_orientation(file, 0), with_orientation(file, 9),
                                 file.substr(0, 2) +
                                     std::string("\xff\xe1\0\x0a"
                                                 "Exif\0\0MM",
                                                 12) +
                                     file.substr(2)})
    EXPECT_EQ(decode_picture(make_bytes(odd, "x")).samples,
              decode_picture(make_bytes(file, "x")).samples);
}

TEST(Picture, RefusesHalfAndDamagedFiles) {
  const std::string good_png = png(64, 64, 3, ramp(64 * 64 * 3));
  const std::string good_jpeg = jpeg(64, 64, 3, ramp(64 * 64 * 3));
  for (const std::string& good : {good_png, good_jpeg}) {
    EXPECT_NO_THROW(decode_picture(make_bytes(good, "x")));
    std::string half = good.substr(0, good.size() / 2), cut = good.substr(0, good.size() - 3);
    std::string overwritten = good;
    std::fill_n(overwritten.begin() + static_cast<std::ptrdiff_t>(good.size() / 2), 40, '\x5a');
    for (const std::string& bad : {half, cut, overwritten}) {
      try {
        decode_picture(make_bytes(bad, "x.picture"));
        ADD_FAILURE() << "accepted";
      } catch (const Error& error) {
        EXPECT_EQ(std::string(error.what()).find("[x.picture] bad "), 0u) << error.what();
      }
    }
  }
}

TEST(Picture, CoversAndIsCutInTheMiddle) {
  // Three squares side by side: black, grey, white.
  std::vector<uint8_t> samples;
  for (int y = 0; y < 8; ++y)
    for (int x = 0; x < 24; ++x) samples.push_back(static_cast<uint8_t>(x / 8 * 100));
  const Image image = read_picture(make_bytes(png(8, 24, 1, samples), "x"), {1, 4, 4});
  EXPECT_EQ(image.shape(), (Shape{1, 4, 4}));
  EXPECT_NEAR(image.pixels[1], 100 / 255.0f, 1e-3);
  EXPECT_NEAR(image.pixels[2], 100 / 255.0f, 1e-3);
}

TEST(Picture, RefusesBrokenFiles) {
  const std::string good_png = png(9, 9, 3, ramp(243)), good_jpeg = jpeg(9, 9, 3, ramp(243));
  for (const std::string& file :
       {std::string("GIF89a"), std::string(), good_png.substr(0, 40), good_png.substr(0, 8),
        good_jpeg.substr(0, 3), good_jpeg.substr(0, 60)})
    EXPECT_THROW(decode_picture(make_bytes(file, "x")), Error) << file.size();
  // A header that promises 2^31 x 2^31 pixels.
  std::string huge = good_png;
  huge[16] = huge[20] = 0x7f;
  EXPECT_THROW(decode_picture(make_bytes(huge, "x")), Error);
}

TEST(ImageFolder, CutOffPicturesAreCountedAndNamed) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "a");
  const std::string good_jpeg = jpeg(16, 16, 3, ramp(16 * 16 * 3));
  const std::string good_png = png(16, 16, 3, ramp(16 * 16 * 3));
  write_file_atomically(folder / "a/1.jpg", good_jpeg);
  write_file_atomically(folder / "a/2.jpg", good_jpeg + "bytes that some cameras append");
  write_file_atomically(folder / "a/6.jpg", good_jpeg + std::string(223'000, '\0'));
  write_file_atomically(folder / "a/3.png", good_png);
  EXPECT_EQ(image_folder(folder.path(), {.size = 4})->size(), 4);
  write_file_atomically(folder / "a/4.jpg", good_jpeg.substr(0, good_jpeg.size() / 2));
  write_file_atomically(folder / "a/5.png", good_png.substr(0, good_png.size() - 13));
  try {
    image_folder(folder.path(), {.size = 4});
    FAIL() << "accepted";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("2 of 6 pictures are cut off"), std::string::npos) << text;
    EXPECT_NE(text.find("4.jpg, "), std::string::npos) << text;
    EXPECT_NE(text.find("5.png;"), std::string::npos) << text;
  }
  // Or left out, like what is no picture at all.
  write_file_atomically(folder / "a/0.jpg", "not a picture");
  const DatasetPtr good = image_folder(folder.path(), {.size = 4, .skip_broken = true});
  EXPECT_EQ(good->size(), 4);
  EXPECT_EQ(fs::path(good->name(0)).filename(), "1.jpg");
  fs::remove(folder / "a/6.jpg");
  fs::remove(folder / "a/1.jpg");
  fs::remove(folder / "a/2.jpg");
  fs::remove(folder / "a/3.png");
  EXPECT_THROW(image_folder(folder.path(), {.size = 4, .skip_broken = true}), Error);
}

TEST(ImageFolder, ClassesAreFolders) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "dog");
  fs::create_directories(folder / "cat/more");
  const std::vector<uint8_t> dark(12 * 8 * 3, 0), light(8 * 8 * 3, 255);
  write_file_atomically(folder / "dog/1.JPG", jpeg(12, 8, 3, dark));
  write_file_atomically(folder / "cat/more/2.png", png(8, 8, 3, light));
  write_file_atomically(folder / "cat/notes.txt", "no picture");
  const DatasetPtr set = image_folder(folder.path(), {.size = 4});
  EXPECT_EQ(set->layout().class_names, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(set->size(), 2);
  const auto cat = sample(*set, 0), dog = sample(*set, 1);
  EXPECT_EQ(cat.y[0], 0);
  EXPECT_EQ(dog.y[0], 1);
  ASSERT_EQ(cat.x.size(), 3u * 4 * 4);
  EXPECT_NEAR(cat.x[0], 1, 1e-5);
  EXPECT_NEAR(dog.x[0], 0, 0.02);
  // Sizes differ, so the median of the shorter sides is taken.
  EXPECT_EQ(image_folder(folder.path())->layout().input, (Shape{3, 8, 8}));
  write_file_atomically(folder / "cat/3.png", png(300, 400, 3, ramp(360'000)));
  write_file_atomically(folder / "cat/4.png", png(300, 401, 3, ramp(360'900)));
  write_file_atomically(folder / "cat/5.png", png(300, 402, 3, ramp(361'800)));
  EXPECT_EQ(image_folder(folder.path())->layout().input, (Shape{3, 224, 224}));
}

TEST(ImageFolder, PassesOverWhatIsHiddenOrEmpty) {
  const TemporaryFolder folder;
  for (const char* name : {".git/x", "a/.thumbnails", "b", "empty", "notes"})
    fs::create_directories(folder / name);
  const std::string picture = png(6, 4, 3, ramp(72));
  for (const char* name :
       {".git/x/1.png", "a/1.png", "a/._1.png", "a/.thumbnails/1.png", "b/1.png"})
    write_file_atomically(folder / name, picture);
  write_file_atomically(folder / "notes/a.txt", "no picture");
  const DatasetPtr set = image_folder(folder.path());
  EXPECT_EQ(set->layout().class_names, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(set->size(), 2);
  EXPECT_EQ(set->layout().input, (Shape{3, 6, 4}));
}

TEST(ImageFolder, SplitsAndMistakes) {
  const TemporaryFolder folder;
  EXPECT_THROW(image_folder(folder.path()), Error);
  for (const char* part : {"train/a", "train/b", "val/a", "val/b"}) {
    fs::create_directories(folder / part);
    write_file_atomically(folder / part / "1.png", png(4, 4, 3, ramp(48)));
  }
  const auto [train, test] = open_set("folder", {.path = folder.path()});
  EXPECT_EQ(train->size(), 2);
  EXPECT_EQ(test->size(), 2);
  fs::rename(folder / "val/b", folder / "val/c");
  EXPECT_THROW(open_set("folder", {.path = folder.path()}), Error);
  // A class may be missing from the test part; the others keep their numbers.
  fs::remove_all(folder / "val/c");
  fs::rename(folder / "val/a", folder / "val/b");
  EXPECT_EQ(sample(*open_set("folder", {.path = folder.path()}).test, 0).y[0], 1);
  // Pictures for tests get the size of those for training.
  write_file_atomically(folder / "val/b/1.png", png(8, 6, 3, ramp(144)));
  EXPECT_EQ(open_set("folder", {.path = folder.path()}).test->layout().input, (Shape{3, 4, 4}));
  EXPECT_EQ(open_set("folder", {.path = folder.path(), .image_size = 2}).test->layout().input,
            (Shape{3, 2, 2}));
}

TEST(ImageFolder, ABrokenPictureIsNamed) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "a");
  const std::string picture = jpeg(32, 32, 3, ramp(32 * 32 * 3));
  // With the mark of its end; without that, it would be refused when the folder is opened.
  write_file_atomically(folder / "a/half.jpg", picture.substr(0, picture.size() / 2) + "\xff\xd9");
  const DatasetPtr set = image_folder(folder.path(), {.size = 16});
  try {
    sample(*set, 0);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("half.jpg] bad JPEG data"), std::string::npos)
        << error.what();
  }
}

std::string records(int count, int label_bytes) {
  std::string file;
  for (int i = 0; i < count; ++i) {
    file += std::string(static_cast<size_t>(label_bytes - 1), '\x13');
    file += static_cast<char>(i);
    file += std::string(1024, '\x00') + std::string(1024, '\x33') + std::string(1024, '\xff');
  }
  return file;
}

TEST(Cifar, ReadsBinaryFiles) {
  const TemporaryFolder folder;
  for (int i = 1; i <= 5; ++i)
    write_file_atomically(folder / fmt::format("data_batch_{}.bin", i), records(2, 1));
  write_file_atomically(folder / "test_batch.bin", records(3, 1));
  const auto [train, test] = cifar10(folder.path());
  EXPECT_EQ(train->size(), 10);
  EXPECT_EQ(test->size(), 3);
  const auto last = sample(*test, 2);
  EXPECT_EQ(last.y[0], 2);
  EXPECT_EQ(last.x[0], 0);
  EXPECT_NEAR(last.x[1024], 0.2f, 1e-6);
  EXPECT_EQ(last.x[3071], 1);
  write_file_atomically(folder / "train.bin", records(2, 2));
  write_file_atomically(folder / "test.bin", records(1, 2));
  EXPECT_EQ(sample(*cifar100(folder.path()).train, 1).y[0], 1);
}

TEST(Cifar, RefusesTruncatedFilesAndWrongLabels) {
  const std::string file = records(2, 1);
  try {
    parse_cifar(make_bytes(file.substr(0, file.size() - 1), "x"), 1);
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("[x] offset 3073"), std::string::npos);
  }
  EXPECT_THROW(parse_cifar(make_bytes("", "x"), 1), Error);
}

TEST(Cifar, ReadsRowsOfAPicture) {
  std::vector<uint8_t> samples(2 * 1024 * 3);
  for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<uint8_t>(i % 3 * 100);
  const Bytes picture = make_bytes(png(2, 1024, 3, samples), "p");
  const CifarPart part = parse_cifar_png(picture, make_bytes("[9, 5, 6]", "l"), 1);
  EXPECT_EQ(part.labels.values<uint8_t>()[0], 5);
  EXPECT_EQ(part.labels.values<uint8_t>()[1], 6);
  EXPECT_EQ(part.images.values<uint8_t>()[0], 0);
  EXPECT_EQ(part.images.values<uint8_t>()[1024], 100);
  EXPECT_EQ(part.images.values<uint8_t>()[2048 + 1023], 200);
  EXPECT_THROW(parse_cifar_png(picture, make_bytes("[9]", "l"), 0), Error);
  EXPECT_THROW(parse_cifar_png(picture, make_bytes("[9, -1]", "l"), 0), Error);
  EXPECT_THROW(parse_cifar_png(picture, make_bytes("{", "l"), 0), Error);
}

}  // namespace
}  // namespace artel::data
