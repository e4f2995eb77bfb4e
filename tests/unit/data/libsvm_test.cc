#include "artel/data/tables/libsvm.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/file.h"
#include "artel/data/sets.h"
#include "tests/support/error_of.h"
#include "tests/support/samples.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

TEST(Libsvm, ReadsSparseRows) {
  const SparseFile file(make_bytes("+1 1:0.5 7:2 # note\n\n-1 3:1e-1\n", "x"));
  EXPECT_EQ(file.size(), 2);
  EXPECT_EQ(file.features(), 7);
  EXPECT_EQ(file.targets(), (std::vector<float>{-1, 1}));
  SparseSample row;
  file.read(1, row);
  EXPECT_EQ(row.target, -1);
  EXPECT_EQ(row.features, (std::vector<int64_t>{2}));
  EXPECT_EQ(row.values, (std::vector<float>{0.1f}));
  EXPECT_EQ(SparseFile(make_bytes("1 0:1 3:1", "x")).features(), 4);
}

TEST(Libsvm, GivesDenseSamples) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "+1 1:0.5\n-1 2:3\n");
  write_file_atomically(folder / "b", "-1 4:1\n");
  const auto [train, test] = open_set("libsvm", {.path = folder / "a", .test_path = folder / "b"});
  EXPECT_EQ(train->layout().input, (Shape{4}));
  EXPECT_EQ(sample(*train, 0).x, (std::vector<float>{0.5f, 0, 0, 0}));
  EXPECT_EQ(sample(*train, 0).y[0], 1);
  EXPECT_EQ(sample(*test, 0).x, (std::vector<float>{0, 0, 0, 1}));
  EXPECT_EQ(sample(*test, 0).y[0], 0);
}

TEST(Libsvm, PartsAreSparseRowsToo) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "5 1:0.5 3:2\n-7 2:3\n5 4:1\n");
  const DatasetPtr whole = libsvm(folder / "a", {}, 0, 0).train;
  const DatasetPtr part = subset(whole, {2, 1});
  ASSERT_NE(part->sparse(), nullptr);
  EXPECT_EQ(part->sparse()->size(), 2);
  EXPECT_EQ(part->sparse()->features(), 4);
  SparseSample row;
  part->sparse()->read(0, row);
  EXPECT_EQ(row.target, 1);  // the class
  EXPECT_EQ(row.features, std::vector<int64_t>{3});
  EXPECT_EQ(row.values, std::vector<float>{1});
  libsvm(folder / "a", {}, 0, 0, true).train->sparse()->read(1, row);
  EXPECT_EQ(row.target, -7);  // the value
  EXPECT_EQ(tensor_dataset(Tensor({1, 2}), Tensor({1}))->sparse(), nullptr);
}

// Such rows can be read, but not as dense ones.
TEST(Libsvm, MayHaveMoreFeaturesThanFitIntoDenseSamples) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "1 1:1 9000000:2\n-1 1:1\n");
  const DatasetPtr set = libsvm(folder / "a", {}, 0, 0).train;
  SparseSample row;
  set->sparse()->read(0, row);
  EXPECT_EQ(row.features.back(), 8999999);
  std::vector<std::byte> none;
  EXPECT_NE(
      artel::error_of([&] { set->read(0, none, none); }).find("do not fit into dense samples"),
      std::string::npos);
}

TEST(Libsvm, OneBaseOfIndicesForAllFilesOfASet) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "zero", "1 0:5 1:6\n-1 1:7\n");
  write_file_atomically(folder / "one", "1 1:8\n");
  const auto second = [&](const char* train, const char* test) {
    return open_set("libsvm", {.path = folder / train, .test_path = folder / test});
  };
  EXPECT_EQ(sample(*second("zero", "one").test, 0).x, (std::vector<float>{0, 8}));
  const Split other = second("one", "zero");
  EXPECT_EQ(sample(*other.train, 0).x, (std::vector<float>{0, 8}));
  EXPECT_EQ(sample(*second("one", "one").train, 0).x, (std::vector<float>{8}));
  SparseFile file(make_bytes("1 0:1", "x"));
  EXPECT_NE(artel::error_of([&] { file.count_from(1); }).find("index 0"), std::string::npos);
}

TEST(Libsvm, AddsTheValuesOfAnIndexThatIsThereTwice) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a", "1 3:1 2:10 3:0.5 1:7 3:2\n");
  SparseSample row;
  SparseFile(map_file(folder / "a")).read(0, row);
  EXPECT_EQ(row.features, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(row.values, (std::vector<float>{7, 10, 3.5f}));
  const Split split = open_set("libsvm", {.path = folder / "a", .test_fraction = 0});
  EXPECT_EQ(sample(*split.train, 0).x, (std::vector<float>{7, 10, 3.5f}));
}

TEST(Libsvm, UnusualNumbers) {
  SparseSample row;
  SparseFile(make_bytes("1 1:1e-50 2:+3", "x")).read(0, row);
  EXPECT_EQ(row.values, (std::vector<float>{0, 3}));
  EXPECT_NE(artel::error_of([] { SparseFile(make_bytes("1 1:1e39", "x")); }).find("too large"),
            std::string::npos);
  EXPECT_NE(artel::error_of([] {
              SparseFile(make_bytes("16777216 1:1\n16777217 1:1", "x"));
            }).find("target 16777217"),
            std::string::npos);
}

TEST(Libsvm, NamesTheLineOfAMistake) {
  const auto parse = [](const std::string& text) {
    return artel::error_of([&] { SparseFile(make_bytes(text, "x")); });
  };
  EXPECT_EQ(parse("1 1:2\n1 x\n"), "[x] line 2: got 'x', expected index:value");
  EXPECT_EQ(parse("a 1:2\n"), "[x] line 1: 'a' is not a number");
  EXPECT_EQ(parse("1 1:\n"), "[x] line 1: '' is not a number");
  EXPECT_NE(parse("1 -4:1\n").find("index -4"), std::string::npos);
  EXPECT_NE(parse("1 99999999999999999999:1\n").find("not a number"), std::string::npos);
  EXPECT_NE(parse("nan 1:1\n").find("not a number"), std::string::npos);
}

}  // namespace
}  // namespace artel::data
