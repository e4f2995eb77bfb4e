// CSV, libsvm, text and arrays.
#include <gtest/gtest.h>

#include <cmath>

#include "artel/base/file.h"
#include "artel/data/csv.h"
#include "artel/data/libsvm.h"
#include "artel/data/sets.h"
#include "artel/data/text.h"
#include "artel/tensor/npy.h"
#include "tests/support/samples.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

Table table(const std::string& text, const CsvOptions& options = {}) {
  return parse_csv(make_bytes(text, "x.csv"), options);
}

template <typename Action>
std::string reason(Action action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Csv, ReadsNumbersCategoriesAndMissingValues) {
  const Table t =
      table("size,colour,kind\r\n1.5,red,a\r\n,\"blue, dark\",b\n-2e1,?,\"say \"\"a\"\"\"");
  ASSERT_EQ(t.rows, 3);
  ASSERT_EQ(t.columns.size(), 3u);
  EXPECT_FALSE(t.columns[0].categorical);
  EXPECT_EQ(t.columns[0].numbers[0], 1.5f);
  EXPECT_TRUE(std::isnan(t.columns[0].numbers[1]));
  EXPECT_EQ(t.columns[0].numbers[2], -20);
  EXPECT_EQ(t.columns[1].categories, (std::vector<std::string>{"blue, dark", "red"}));
  EXPECT_EQ(t.columns[1].codes, (std::vector<int32_t>{1, 0, -1}));
  EXPECT_EQ(t.columns[2].categories[2], "say \"a\"");
}

TEST(Csv, GuessesSeparatorAndHeader) {
  EXPECT_EQ(table("1;2;3\n4;5;6\n").columns.at(0).name, "column 1");
  EXPECT_EQ(table("1;2;3\n4;5;6\n").rows, 2);
  EXPECT_EQ(table("a\tb\n1\t2\n").columns.at(1).name, "b");
  EXPECT_EQ(table("a,b\nc,d\n", {.header = CsvHeader::absent}).rows, 2);
}

TEST(Csv, ReadsWhatPandasWrites) {
  const Table index = table(",a,b\n0,1.5,x\n1,2.5,y\n");
  EXPECT_EQ(index.rows, 2);
  EXPECT_EQ(index.columns.at(0).name, "column 1");
  EXPECT_EQ(index.columns.at(1).name, "a");
  EXPECT_EQ(index.columns.at(1).numbers, (std::vector<double>{1.5, 2.5}));
  // Nothing tells that this would be a header.
  EXPECT_EQ(table(",red,blue\nblue,red,red\n").rows, 2);
  EXPECT_EQ(table("?,red\n1,blue\n").rows, 2);
}

TEST(Csv, SkipsAByteOrderMark) {
  const Table bare = table(
      "\xef\xbb\xbf"
      "1,2\n3,4\n");
  EXPECT_EQ(bare.rows, 2);
  EXPECT_EQ(bare.columns.at(0).numbers, (std::vector<double>{1, 3}));
  EXPECT_EQ(table("\xef\xbb\xbf"
                  "a,b\n3,4\n")
                .columns.at(0)
                .name,
            "a");
}

TEST(Csv, UnusualNumbersAreNoCategories) {
  const Table t = table("a,b,c,d,e\n1,1,1,1,1\n1e-50,1e39,N/A,NULL,+1e-400\n");
  for (const Column& column : t.columns) EXPECT_FALSE(column.categorical) << column.name;
  EXPECT_EQ(t.columns[0].numbers[1], 1e-50);
  EXPECT_EQ(t.columns[1].numbers[1], 1e39);
  EXPECT_TRUE(std::isnan(t.columns[2].numbers[1]));
  EXPECT_TRUE(std::isnan(t.columns[3].numbers[1]));
  EXPECT_EQ(t.columns[4].numbers[1], 0);
  for (const char* infinite : {"inf", "-Infinity", "1e400", "123e99999999999999999999"})
    EXPECT_EQ(
        reason([&] { table(fmt::format("a,b\n1,2\n{},3\n", infinite)); }),
        fmt::format("[x.csv] row 2: column 'a' is {}, expected a finite number, or nothing if "
                    "it is missing",
                    infinite));
  EXPECT_TRUE(table("a,b\n1,2\n+-3,4\n").columns[0].categorical);
}

TEST(Csv, RefusesTwoColumnsOfOneName) {
  EXPECT_EQ(reason([] { table("a,b,a\n1,2,3\n"); }),
            "[x.csv] line 1: two columns are called 'a', expected different names; rename one");
}

TEST(Csv, NamesTheLineOfAMistake) {
  EXPECT_EQ(reason([] { table("a,b\n1,2\n\n1,2,3\n"); }),
            "[x.csv] line 4: got 3 fields, expected 2");
  EXPECT_EQ(reason([] { table("a,b\n1,\"2\n3"); }), "[x.csv] line 2: a quote is never closed");
  EXPECT_NE(reason([] { table("a,b\n1,\"2\"x\n"); }).find("line 2: text after"), std::string::npos);
  EXPECT_NE(reason([] { table("\n\n"); }).find("empty"), std::string::npos);
}

TEST(TableEncoder, StandardisesAndEncodes) {
  const Table t = table("n,c,y\n1,u,no\n3,v,yes\n,w,no\n5,?,yes\n");
  const TableEncoder encoder(t, {0, 1, 2}, {});
  const DatasetPtr set = encoder.encode(t, {0, 1, 2, 3});
  EXPECT_EQ(set->layout().input, (Shape{4}));
  EXPECT_EQ(set->layout().class_names, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(sample(*set, 0).x, (std::vector<float>{-1, 1, 0, 0}));
  EXPECT_EQ(sample(*set, 1).x, (std::vector<float>{1, 0, 1, 0}));
  EXPECT_EQ(sample(*set, 2).x, (std::vector<float>{0, 0, 0, 1}));
  EXPECT_EQ(sample(*set, 3).x, (std::vector<float>{3, 0, 0, 0}));
  EXPECT_EQ(sample(*set, 3).y[0], 1);
}

TEST(TableEncoder, ChoosesTheTask) {
  const Table whole = table("x,y\n1,10\n2,9\n3,10\n");
  const DatasetPtr classes = TableEncoder(whole, {0, 1, 2}, {}).encode(whole, {0, 1, 2});
  EXPECT_EQ(classes->layout().class_names, (std::vector<std::string>{"9", "10"}));
  const DatasetPtr values =
      TableEncoder(whole, {0, 1, 2}, {.task = Task::values}).encode(whole, {1});
  EXPECT_EQ(values->layout().target_kind, TargetKind::values);
  EXPECT_EQ((sample<float, float>(*values, 0).y[0]), 9);
  const Table real = table("y,x\n1.5,1\n2,2\n");
  EXPECT_EQ(TableEncoder(real, {0, 1}, {.target = "y"}).encode(real, {0})->layout().target_kind,
            TargetKind::values);
}

TEST(TableEncoder, KeepsTheDigitsOfNumbersFarFromZero) {
  std::string text = "time,tiny,same,y\n";
  const std::vector<double> offsets = {-400.5, 12.25, 399.75, -31, 7.5, 123.125};
  for (const double offset : offsets)
    text += fmt::format("{:.3f},{}e-60,0.1,{}\n", 1.6e9 + offset, offset, offset > 0 ? "a" : "b");
  const Table t = table(text);
  const std::vector<int64_t> rows = {0, 1, 2, 3, 4, 5};
  const DatasetPtr set = TableEncoder(t, rows, {}).encode(t, rows);
  double mean = 0, variance = 0;
  for (const double offset : offsets) mean += offset / 6;
  for (const double offset : offsets) variance += (offset - mean) * (offset - mean) / 6;
  for (size_t i = 0; i < offsets.size(); ++i) {
    const std::vector<float> x = sample(*set, static_cast<int64_t>(i)).x;
    EXPECT_NEAR(x[0], (offsets[i] - mean) / std::sqrt(variance), 1e-6) << i;
    EXPECT_NEAR(x[1], (offsets[i] - mean) / std::sqrt(variance), 1e-6) << i;
    EXPECT_EQ(x[2], 0) << i;
  }
}

TEST(TableEncoder, RefusesTargetsThatWouldLoseTheirDigits) {
  const Table t = table("x,y\n1,1600000000.5\n2,1600000400.5\n3,1600000200.25\n");
  EXPECT_NE(reason([&] {
              TableEncoder(t, {0, 1, 2}, {});
            }).find("try to subtract 1.6e+09"),
            std::string::npos);
  const Table far = table("x,y\n1,1e39\n2,2.5\n");
  EXPECT_NE(reason([&] {
              TableEncoder(far, {0, 1}, {}).encode(far, {0});
            }).find("too large"),
            std::string::npos);
}

TEST(TableEncoder, TellsLargeClassesApart) {
  const Table t = table("x,y\n1,16777216\n2,16777217\n3,-0\n4,0\n");
  const DatasetPtr set = TableEncoder(t, {0, 1, 2, 3}, {}).encode(t, {0, 1, 2, 3});
  EXPECT_EQ(set->layout().class_names, (std::vector<std::string>{"0", "16777216", "16777217"}));
  EXPECT_EQ(sample(*set, 1).y[0], 2);
  EXPECT_EQ(sample(*set, 2).y[0], sample(*set, 3).y[0]);
  const Table larger = table("x,y\n1,9007199254740992\n2,9007199254740993\n");
  EXPECT_NE(reason([&] {
              TableEncoder(larger, {0, 1}, {}).encode(larger, {0});
            }).find("2^53"),
            std::string::npos);
}

TEST(TableEncoder, RefusesWhatItCannotEncode) {
  const Table t = table("x,y\n1,a\n2,b\n3,\n");
  EXPECT_NE(reason([&] { TableEncoder(t, {0}, {}).encode(t, {1}); }).find("class 'b'"),
            std::string::npos);
  EXPECT_NE(reason([&] { TableEncoder(t, {0}, {}).encode(t, {2}); }).find("row 3"),
            std::string::npos);
  EXPECT_NE(reason([&] { TableEncoder(t, {0}, {.target = "z"}); }).find("no column 'z'"),
            std::string::npos);
  EXPECT_NE(reason([&] { TableEncoder(t, {0}, {.task = Task::values}); }).find("categories"),
            std::string::npos);
}

TEST(Csv, SplitsOneFileOrTakesTwo) {
  const TemporaryFolder folder;
  std::string text = "x,y\n";
  for (int i = 0; i < 20; ++i) text += fmt::format("{},{}\n", i, i % 2);
  write_file_atomically(folder / "a.csv", text);
  const auto [train, test] = open_set("csv", {.path = folder / "a.csv", .test_fraction = 0.25});
  EXPECT_EQ(train->size(), 15);
  EXPECT_EQ(test->size(), 5);
  const auto both = open_set("csv", {.path = folder / "a.csv", .test_path = folder / "a.csv"});
  EXPECT_EQ(both.test->size(), 20);
}

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
  EXPECT_NE(reason([&] { file.count_from(1); }).find("index 0"), std::string::npos);
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
  EXPECT_NE(reason([] { SparseFile(make_bytes("1 1:1e39", "x")); }).find("too large"),
            std::string::npos);
  EXPECT_NE(reason([] {
              SparseFile(make_bytes("16777216 1:1\n16777217 1:1", "x"));
            }).find("target 16777217"),
            std::string::npos);
}

TEST(Libsvm, NamesTheLineOfAMistake) {
  const auto parse = [](const std::string& text) {
    return reason([&] { SparseFile(make_bytes(text, "x")); });
  };
  EXPECT_EQ(parse("1 1:2\n1 x\n"), "[x] line 2: got 'x', expected index:value");
  EXPECT_EQ(parse("a 1:2\n"), "[x] line 1: 'a' is not a number");
  EXPECT_EQ(parse("1 1:\n"), "[x] line 1: '' is not a number");
  EXPECT_NE(parse("1 -4:1\n").find("index -4"), std::string::npos);
  EXPECT_NE(parse("1 99999999999999999999:1\n").find("not a number"), std::string::npos);
  EXPECT_NE(parse("nan 1:1\n").find("not a number"), std::string::npos);
}

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
  EXPECT_NE(reason([&] { open_set("npz", {.path = folder / "c.npz"}); }).find("other"),
            std::string::npos);
}

TEST(Npz, TestSamplesMustBeLikeThoseForTraining) {
  const TemporaryFolder folder;
  const Tensor labels = Tensor::from<int64_t>({2}, {0, 1});
  write_npz(folder / "a.npz", {{"x_train", Tensor({2, 3})},
                               {"y_train", labels},
                               {"x_test", Tensor({2, 4})},
                               {"y_test", labels}});
  EXPECT_NE(reason([&] { open_set("npz", {.path = folder / "a.npz"}); }).find("test samples"),
            std::string::npos);
}

TEST(Sets, NamesTheNearestAndHowToGetIt) {
  EXPECT_EQ(reason([] { open_set("minst"); }),
            "no data set is called 'minst'; did you mean 'mnist'?");
  EXPECT_NE(reason([] { open_set("csv"); }).find("data.path"), std::string::npos);
}

}  // namespace
}  // namespace artel::data
