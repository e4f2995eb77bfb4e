// `artel predict` reads files like training does.
#include "artel/run/samples/samples.h"

#include <gtest/gtest.h>

#include <numeric>

#include "artel/base/file.h"
#include "artel/data/images/image_folder.h"
#include "artel/tensor/npy.h"
#include "tests/support/error_of.h"
#include "tests/support/pictures.h"
#include "tests/support/samples.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

data::SampleLayout layout_of(Shape shape, DType type = DType::f32) {
  data::SampleLayout layout;
  layout.input = std::move(shape);
  layout.input_type = type;
  return layout;
}

std::vector<float> floats(const Tensor& tensor) {
  const auto values = tensor.values<float>();
  return {values.begin(), values.end()};
}

TEST(ReadSamples, SeesPicturesAsTrainingDoes) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "a");
  for (const auto& [height, width] : {std::pair(20, 60), std::pair(90, 30), std::pair(16, 16)}) {
    std::vector<uint8_t> samples(static_cast<size_t>(height * width * 3));
    for (size_t i = 0; i < samples.size(); ++i) samples[i] = static_cast<uint8_t>(i * i / 7);
    write_file_atomically(folder / "a/1.png", png(height, width, 3, samples));
    write_file_atomically(folder / "a/2.jpg", jpeg(height, width, 3, samples));
    const data::DatasetPtr set = data::image_folder(folder.path(), {.size = 8});
    for (const char* name : {"1.png", "2.jpg"}) {
      const Tensor seen = read_samples(folder / "a" / name, set->layout(), {});
      EXPECT_EQ(seen.shape(), (Shape{1, 3, 8, 8}));
      EXPECT_EQ(floats(seen), data::sample(*set, name[0] - '1').x) << name << height;
    }
  }
}

// An array as a file, and what is read from it.
Tensor read_array(const Tensor& array, const data::SampleLayout& layout) {
  const TemporaryFolder folder;
  write_npy(folder / "a.npy", array);
  return read_samples(folder / "a.npy", layout, {});
}

TEST(ReadSamples, PutsChannelsFirst) {
  std::vector<float> counting(2 * 4 * 5 * 3);
  std::iota(counting.begin(), counting.end(), 0.0f);
  const Tensor images = Tensor::from<float>({2, 4, 5, 3}, counting);
  const data::SampleLayout layout = layout_of({3, 4, 5});
  const Tensor rows = read_array(images, layout);
  ASSERT_EQ(rows.shape(), (Shape{2, 3, 4, 5}));
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t c = 0; c < 3; ++c)
      for (int64_t p = 0; p < 20; ++p)
        ASSERT_EQ(rows.values<float>()[(i * 3 + c) * 20 + p], counting[(i * 20 + p) * 3 + c]);
  const Tensor one = read_array(images.rows(1, 2).reshaped({4, 5, 3}), layout);
  EXPECT_EQ(floats(one), floats(rows.rows(1, 2).clone()));
  EXPECT_EQ(floats(read_array(rows, layout)), floats(rows));
  EXPECT_EQ(floats(read_array(one.reshaped({3, 4, 5}), layout)), floats(one));
  // As many elements, but it is ambiguous in which order.
  EXPECT_THROW(read_array(one.reshaped({5, 4, 3}), layout), Error);
  EXPECT_THROW(read_array(one.reshaped({60}), layout), Error);
}

TEST(ReadSamples, GreyImagesNeedNoChannel) {
  const Tensor image = Tensor::from<uint8_t>({2, 3}, {0, 51, 102, 153, 204, 255});
  const data::SampleLayout layout = layout_of({1, 2, 3});
  const std::vector<float> expected = floats(read_array(image.reshaped({1, 2, 3}), layout));
  EXPECT_FLOAT_EQ(expected[1], 0.2f);
  for (const Shape& shape : {Shape{2, 3}, Shape{1, 1, 2, 3}, Shape{2, 3, 1}, Shape{1, 2, 3, 1}})
    EXPECT_EQ(floats(read_array(image.reshaped(shape), layout)), expected) << to_string(shape);
}

data::SampleLayout two_inputs(DType type) {
  data::SampleLayout layout = layout_of({4}, type);
  layout.parts = {{"x", {2}}, {"x2", {1, 2}}};
  return layout;
}

TEST(ReadSamples, TakesSeveralInputsFromAnArchive) {
  const TemporaryFolder folder;
  const auto read = [&](const NamedTensors& arrays, const data::SampleLayout& layout) {
    write_npz(folder / "a.npz", arrays);
    return read_samples(folder / "a.npz", layout, {});
  };
  const Tensor x = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  const Tensor x2 = Tensor::from<uint8_t>({2, 1, 2}, {0, 255, 51, 0});
  const Tensor rows = read({{"x2", x2}, {"x", x}}, two_inputs(DType::f32));
  EXPECT_EQ(rows.shape(), (Shape{2, 4}));
  EXPECT_EQ(floats(rows), (std::vector<float>{1, 2, 0, 1, 3, 4, 51 * (1 / 255.0f), 0}));
  // One sample, and NumPy's whole numbers as tokens.
  const Tensor tokens = read(
      {{"x", Tensor::from<int64_t>({2}, {7, 8})}, {"x2", Tensor::from<int64_t>({1, 2}, {9, 1})}},
      two_inputs(DType::i32));
  EXPECT_EQ(tokens.shape(), (Shape{1, 4}));
  EXPECT_EQ(tokens.values<int32_t>()[2], 9);
  // A network with one input.
  EXPECT_EQ(floats(read({{"x", x}}, layout_of({2}))), floats(x));

  const auto error = [&](const NamedTensors& arrays) -> std::string {
    return artel::error_of([&] { read(arrays, two_inputs(DType::f32)); });
  };
  const std::string where = fmt::format("[{}] ", (folder / "a.npz").string());
  EXPECT_EQ(error({{"x", x}}), where + "holds no array 'x2', expected one with samples [1, 2]");
  EXPECT_EQ(error({{"x", x}, {"x2", x}}),
            where + "[x2] holds an array [2, 2], expected one or several samples [1, 2]");
  EXPECT_EQ(error({{"x", x}, {"x2", Tensor({3, 1, 2})}}),
            where + "input 'x2' has 3 samples, expected 2 as 'x' has");
}

TEST(ReadSamples, ConvertsNumbersToWhatTheNetworkTakes) {
  const Tensor numbers = Tensor::from<int32_t>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(floats(read_array(numbers, layout_of({2}))), (std::vector<float>{1, 2, 3, 4}));
  const Tensor tokens = read_array(numbers.to(DType::u8), layout_of({2}, DType::i32));
  EXPECT_EQ(tokens.values<int32_t>()[3], 4);
  EXPECT_THROW(read_array(numbers.to(DType::f32), layout_of({2}, DType::i32)), Error);
}

}  // namespace
}  // namespace artel
