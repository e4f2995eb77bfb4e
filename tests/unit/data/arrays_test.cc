// Arrays, tokens, and sets by name.
#include <gtest/gtest.h>

#include <numeric>

#include "artel/base/file.h"
#include "artel/data/sets.h"
#include "artel/data/text/text.h"
#include "artel/tensor/npy.h"
#include "tests/support/error_of.h"
#include "tests/support/samples.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

TEST(Text, MakesWindowsOfTheNextToken) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.txt", "abcabcabcaaa");
  const auto [train, test] =
      open_set("text", {.path = folder / "a.txt", .test_fraction = 0.25, .context = 2});
  EXPECT_EQ(train->layout().classes, 3);
  EXPECT_EQ(train->layout().class_names[1], "b");
  ASSERT_EQ(train->size(), 4);
  const auto window = sample<int32_t>(*train, 1);
  EXPECT_EQ(window.x, (std::vector<int32_t>{2, 0}));
  EXPECT_EQ(window.y, (std::vector<int32_t>{0, 1}));
  EXPECT_EQ(sample<int32_t>(*test, 0).x, (std::vector<int32_t>{0, 0}));
  EXPECT_THROW(open_set("text", {.path = folder / "a.txt", .context = 100}), Error);
}

TEST(Text, RefusesTokensOutsideOfTheVocabulary) {
  const Tensor tokens = Tensor::from<int32_t>({4}, {0, 1, 5, 0});
  const DatasetPtr set = token_windows(tokens, 5, {.context = 1});
  EXPECT_EQ(sample<int32_t>(*set, 0).y[0], 1);
  EXPECT_THROW(sample<int32_t>(*set, 1), Error);
  EXPECT_EQ(token_windows(tokens, 5, {.context = 2, .stride = 1})->size(), 2);
  EXPECT_THROW(token_windows(Tensor({4}), 5, {}), Error);
}

TEST(Npz, FindsInputsAndTargets) {
  const TemporaryFolder folder;
  Tensor images({4, 2, 2, 3}, DType::u8);
  images.values<uint8_t>()[1] = 255;  // green of the first pixel
  const Tensor labels = Tensor::from<int64_t>({4, 1}, {0, 1, 2, 1});
  write_npz(folder / "a.npz", {{"x_train", images},
                               {"y_train", labels},
                               {"x_test", images.rows(0, 1)},
                               {"y_test", labels.rows(0, 1)}});
  const auto [train, test] = open_set("npz", {.path = folder / "a.npz"});
  EXPECT_EQ(train->layout().input, (Shape{3, 2, 2}));
  EXPECT_EQ(train->layout().classes, 3);
  EXPECT_EQ(sample(*train, 0).x[4], 1);
  EXPECT_EQ(test->size(), 1);
  write_npz(folder / "b.npz", {{"data", Tensor({10, 3})}, {"target", Tensor({10})}});
  EXPECT_EQ(open_set("npz", {.path = folder / "b.npz"}).train->size(), 9);
  write_npz(folder / "c.npz", {{"other", Tensor({10, 3})}});
  EXPECT_NE(artel::error_of([&] { open_set("npz", {.path = folder / "c.npz"}); }).find("other"),
            std::string::npos);
}

TEST(Npz, TestSamplesMustBeLikeThoseForTraining) {
  const TemporaryFolder folder;
  const Tensor labels = Tensor::from<int64_t>({2}, {0, 1});
  write_npz(folder / "a.npz", {{"x_train", Tensor({2, 3})},
                               {"y_train", labels},
                               {"x_test", Tensor({2, 4})},
                               {"y_test", labels}});
  EXPECT_NE(
      artel::error_of([&] { open_set("npz", {.path = folder / "a.npz"}); }).find("test samples"),
      std::string::npos);
  // As many numbers, in other parts.
  write_npz(folder / "b.npz", {{"x_train", Tensor({2, 3})},
                               {"x2_train", Tensor({2, 2})},
                               {"y_train", labels},
                               {"x_test", Tensor({2, 2})},
                               {"x2_test", Tensor({2, 3})},
                               {"y_test", labels}});
  const std::string said = artel::error_of([&] { open_set("npz", {.path = folder / "b.npz"}); });
  EXPECT_NE(said.find("test samples are f32 [5] of x [2] and x2 [3], expected f32 [5] of x [3] and "
                      "x2 [2] like the training samples"),
            std::string::npos)
      << said;
}

TEST(JoinInputs, NeedsANameForEach) {
  const DatasetPtr set = tensor_dataset(Tensor({2, 3}), Tensor());
  const DatasetPtr pair = join_inputs({{"x", set}, {"x2", set}});
  EXPECT_EQ(pair->layout().parts.size(), 2u);
  EXPECT_EQ(join_inputs({{"x", pair}, {"x2", set}})->layout().parts.size(), 2u);
  for (const std::string name : {"x", ""})
    EXPECT_EQ(
        artel::error_of([&] {
          join_inputs({{"x", set}, {name, set}});
        }),
        fmt::format("[join_inputs] got an input named '{}', expected a name for each, and each "
                    "once",
                    name));
}

// Inputs lie side by side in a sample, each as it is read by itself.
TEST(Npz, SamplesMayHaveSeveralInputs) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::from<float>({2, 2}, {1, 2, 3, 4});
  const Tensor x2 = Tensor::from<uint8_t>({2, 1, 2}, {0, 255, 255, 0});
  const Tensor labels = Tensor::from<int64_t>({2}, {0, 1});
  write_npz(folder / "a.npz", {{"x", x}, {"x2", x2}, {"y", labels}});
  const DatasetPtr set = open_set("npz", {.path = folder / "a.npz", .test_fraction = 0}).train;
  const SampleLayout& layout = set->layout();
  EXPECT_EQ(layout.input, (Shape{4}));
  ASSERT_EQ(layout.parts.size(), 2u);
  EXPECT_EQ(layout.parts[0].name, "x");
  EXPECT_EQ(layout.parts[1].name, "x2");
  EXPECT_EQ(layout.parts[1].shape, (Shape{1, 1, 2}));
  std::vector<float> input(4);
  int32_t label = 0;
  set->read(1, std::as_writable_bytes(std::span(input)),
            std::as_writable_bytes(std::span(&label, 1)));
  EXPECT_EQ(input, (std::vector<float>{3, 4, 1, 0}));
  EXPECT_EQ(label, 1);
  const DatasetPtr tokens = tensor_dataset(Tensor({2, 3}, DType::i32), Tensor());
  EXPECT_NE(artel::error_of([&] {
              join_inputs({{"x", set}, {"x2", tokens}});
            }).find("input 'x2' holds i32, expected f32 like 'x': the inputs of a sample are all"),
            std::string::npos);
  const DatasetPtr three = tensor_dataset(Tensor({3, 3}), Tensor());
  EXPECT_EQ(artel::error_of([&] {
              join_inputs({{"x", set}, {"x2", three}});
            }),
            "input 'x2' has 3 samples, expected 2 as 'x' has");
}

// NumPy's whole numbers have 64 bits.
TEST(Npz, WholeNumbersAreTokens) {
  const TemporaryFolder folder;
  const Tensor x = Tensor::from<int64_t>({2, 2}, {1, 2, 3, -4});
  const Tensor x2 = Tensor::from<int32_t>({2, 1}, {5, 6});
  write_npz(folder / "a.npz", {{"x", x}, {"x2", x2}});
  const DatasetPtr set = open_set("npz", {.path = folder / "a.npz", .test_fraction = 0}).train;
  EXPECT_EQ(set->layout().input_type, DType::i32);
  std::vector<int32_t> row(3);
  set->read(1, std::as_writable_bytes(std::span(row)), {});
  EXPECT_EQ(row, (std::vector<int32_t>{3, -4, 6}));

  const DatasetPtr large =
      tensor_dataset(Tensor::from<int64_t>({1, 1}, {int64_t{1} << 31}), Tensor());
  std::vector<int32_t> one(1);
  EXPECT_TRUE(
      artel::error_of([&] {
        large->read(0, std::as_writable_bytes(std::span(one)), {});
      }).starts_with("a token of the data set is 2147483648, expected a number of 32 bits"));
}

// Nothing that is meant as an input or a target is left out in silence.
TEST(Npz, RefusesLabelsOf64Bits) {
  const Tensor labels = Tensor::from<int64_t>({2}, {1, (int64_t{1} << 32) + 1});
  EXPECT_NE(artel::error_of([&] {
              tensor_dataset(Tensor({2, 1}), labels);
            }).find("label 1 of the data set is 4294967297"),
            std::string::npos);
}

TEST(Npz, EveryInputAndTargetHasAMeaning) {
  const TemporaryFolder folder;
  const Tensor x({4, 2}), y({4}, DType::i32);
  const auto said = [&](const NamedTensors& arrays) {
    write_npz(folder / "a.npz", arrays);
    return artel::error_of([&] { open_set("npz", {.path = folder / "a.npz"}); });
  };
  const std::string where = fmt::format("[{}] ", (folder / "a.npz").string());
  EXPECT_EQ(
      said({{"x", x}, {"y", y}, {"y2", y}}),
      where +
          "the archive holds the arrays x, y, y2, of which 'y2' has no meaning: expected inputs "
          "x, x2, x3, ... without a gap, one target y, and _train or _test after all of them or "
          "none");
  EXPECT_NE(said({{"x", x}, {"y", y}, {"x3", x}}).find("'x3' has no meaning"), std::string::npos);
  EXPECT_NE(said({{"x_train", x}, {"x_test", x}, {"x2", x}}).find("'x2' has no meaning"),
            std::string::npos);
  EXPECT_EQ(said({{"x", x}, {"y", y}, {"yields", y}}), "");
}

TEST(Sets, NamesTheNearestAndHowToGetIt) {
  EXPECT_TRUE(artel::error_of([] {
                open_set("minst");
              }).starts_with("unknown data set 'minst'; did you mean 'mnist'?; known: mnist, "));
  EXPECT_NE(artel::error_of([] { open_set("csv"); }).find("data.path"), std::string::npos);
}

}  // namespace
}  // namespace artel::data
