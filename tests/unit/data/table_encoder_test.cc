// Tables as samples.
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "artel/base/file.h"
#include "artel/data/sets.h"
#include "artel/data/tables/table_report.h"
#include "tests/support/error_of.h"
#include "tests/support/samples.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/data/csv_text.h"

namespace artel::data {
namespace {

TEST(TableEncoder, StandardisesAndEncodes) {
  const Table t = table("n,c,y\n1,u,no\n3,v,yes\n,w,no\n5,?,yes\n");
  const TableEncoder encoder(t, {0, 1, 2}, {});
  const DatasetPtr set = encoder.encode(t, {0, 1, 2, 3});
  EXPECT_EQ(set->layout().input, (Shape{5}));  // the second says where n is missing
  EXPECT_EQ(set->layout().class_names, (std::vector<std::string>{"no", "yes"}));
  EXPECT_EQ(sample(*set, 0).x, (std::vector<float>{-1, 0, 1, 0, 0}));
  EXPECT_EQ(sample(*set, 1).x, (std::vector<float>{1, 0, 0, 1, 0}));
  EXPECT_EQ(sample(*set, 2).x, (std::vector<float>{0, 1, 0, 0, 1}));
  EXPECT_EQ(sample(*set, 3).x, (std::vector<float>{3, 0, 0, 0, 0}));
  EXPECT_EQ(sample(*set, 3).y[0], 1);
}

TEST(TableEncoder, ChoosesTheTask) {
  const Table whole = table("x,y\n1,10\n2,9\n3,10\n");
  const DatasetPtr classes = TableEncoder(whole, {0, 1, 2}, {}).encode(whole, {0, 1, 2});
  EXPECT_EQ(classes->layout().class_names, (std::vector<std::string>{"9", "10"}));
  const DatasetPtr values =
      TableEncoder(whole, {0, 1, 2}, {.task = Task::values, .scale_target = false})
          .encode(whole, {1});
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
  EXPECT_NE(artel::error_of([&] {
              TableEncoder(t, {0, 1, 2}, {.scale_target = false});
            }).find("try subtracting 1.6e+09"),
            std::string::npos);
  const Table far = table("x,y\n1,1e39\n2,2.5\n");
  EXPECT_NE(artel::error_of([&] {
              TableEncoder(far, {0, 1}, {.scale_target = false}).encode(far, {0});
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
  EXPECT_NE(artel::error_of([&] {
              TableEncoder(larger, {0, 1}, {}).encode(larger, {0});
            }).find("2^53"),
            std::string::npos);
}

TEST(TableEncoder, RefusesWhatItCannotEncode) {
  const Table t = table("x,y\n1,a\n2,b\n3,\n");
  EXPECT_NE(artel::error_of([&] { TableEncoder(t, {0}, {}).encode(t, {1}); }).find("class 'b'"),
            std::string::npos);
  EXPECT_NE(artel::error_of([&] { TableEncoder(t, {0}, {}).encode(t, {2}); }).find("row 3"),
            std::string::npos);
  EXPECT_NE(artel::error_of([&] { TableEncoder(t, {0}, {.target = "z"}); }).find("no column 'z'"),
            std::string::npos);
  EXPECT_NE(
      artel::error_of([&] { TableEncoder(t, {0}, {.task = Task::values}); }).find("categories"),
      std::string::npos);
}

TEST(TableEncoder, ScalesTheTargetAndSaysHow) {
  const Table t = table("x,y\n1,1600000000.5\n2,1600000400.5\n3,1600000200.25\n");
  const TableEncoder encoder(t, {0, 1, 2}, {});
  const DatasetPtr set = encoder.encode(t, {0, 1, 2});
  double sum = 0;
  for (int64_t i = 0; i < 3; ++i) {
    const double y = (sample<float, float>(*set, i).y[0]);
    sum += y;
    EXPECT_NEAR(encoder.target_offset() + encoder.target_scale() * y, t.columns[1].numbers[i],
                1e-4);
  }
  EXPECT_NEAR(sum, 0, 1e-6);
}

TEST(TableEncoder, LearnsFromTheTrainingRowsAlone) {
  const Table t = table("c,n,y\nu,1,a\nv,3,b\nw,5,a\n");
  const TableEncoder encoder(t, {0, 1}, {});
  EXPECT_EQ(encoder.features()[0].categories, (std::vector<std::string>{"u", "v"}));
  EXPECT_EQ(encoder.features()[1].mean, 2);
  EXPECT_EQ(sample(*encoder.encode(t, {2}), 0).x, (std::vector<float>{0, 0, 3}));
}

TEST(TableEncoder, LeavesOutAndRenames) {
  const Table t = table("id,zip,n,y\n1,7,0.5,a\n2,8,1,b\n3,7,2,a\n");
  const TableEncoder encoder(t, {0, 1, 2}, {.ignore = {"id"}, .categorical = {"zip"}});
  ASSERT_EQ(encoder.features().size(), 2u);
  EXPECT_EQ(encoder.features()[0].categories, (std::vector<std::string>{"7", "8"}));
  const TableEncoder::Rows rows(encoder, {"n", "zip"}, "new.csv");
  std::vector<float> x(3);
  UnseenNames unseen;
  rows.encode(std::vector<std::string_view>{"1", "8.0"}, 2, x.data(), unseen);
  EXPECT_EQ(x[0], 0);
  EXPECT_EQ(x[1], 1);
  EXPECT_NE(
      artel::error_of([&] { TableEncoder(t, {0}, {.ignore = {"idd"}}); }).find("did you mean 'id'"),
      std::string::npos);
  EXPECT_NE(artel::error_of([&] { TableEncoder(t, {0}, {.ignore = {"y"}}); }).find("target 'y'"),
            std::string::npos);
}

// A saved encoder encodes raw rows of other files like the training rows.
TEST(TableEncoder, EncodesRawRowsAfterItWasSaved) {
  const TemporaryFolder folder;
  const Table t = table("n,c,y\n1,u,1.5\n3,v,2.5\n,w,9.5\n5,?,7.25\n");
  const TableEncoder encoder(t, {0, 1, 2}, {});
  encoder.save(folder / "table.json");
  const auto loaded = TableEncoder::load(folder / "table.json");
  EXPECT_EQ(loaded->target_offset(), encoder.target_offset());
  EXPECT_EQ(loaded->target_scale(), encoder.target_scale());
  const DatasetPtr set = encoder.encode(t, {0, 1, 2, 3});
  CsvReader reader(make_bytes("c,extra,n\nu,x,1\nv,,3\nw,x,NA\n,y,5\n", "new.csv"));
  const TableEncoder::Rows rows(*loaded, reader.columns(), "new.csv");
  std::vector<std::string_view> fields;
  std::vector<float> x(static_cast<size_t>(loaded->width()));
  UnseenNames unseen;
  for (int64_t i = 0; reader.next(fields); ++i) {
    rows.encode(fields, reader.line(), x.data(), unseen);
    EXPECT_EQ(x, sample(*set, i).x) << i;
  }
  EXPECT_TRUE(unseen.warnings().empty());
  for (const char* name : {"x", "z", "x"})
    rows.encode(std::vector<std::string_view>{name, "", "1"}, 6, x.data(), unseen);
  EXPECT_EQ(unseen.warnings(), std::vector<std::string>{
                                   "column 'c': 3 rows with names that the training data does not "
                                   "have, such as 'x', 'z'; they count as missing"});
  EXPECT_NE(artel::error_of([&] {
              rows.encode(std::vector<std::string_view>{"u", "", "many"}, 7, x.data(), unseen);
            }).find("[new.csv] line 7: column 'n' is 'many', expected a number"),
            std::string::npos);
  EXPECT_NE(
      artel::error_of([&] { TableEncoder::Rows(*loaded, {"c"}, "new.csv"); }).find("no column 'n'"),
      std::string::npos);
}

TEST(TableEncoder, HashesColumnsOfManyNames) {
  std::string text = "id,name,target\n";
  for (int i = 0; i < 40000; ++i) text += fmt::format("u{},x,{}\n", i, i % 2);
  const Table table = parse_csv(make_bytes(text, "t.csv"));
  std::vector<int64_t> rows(40000);
  std::iota(rows.begin(), rows.end(), 0);
  const TableEncoder encoder(table, rows, {});
  EXPECT_EQ(encoder.width(), TableFeature::kBuckets + 1);
  const std::vector<float> x = sample(*encoder.encode(table, {17}), 0).x;
  EXPECT_EQ(std::accumulate(x.begin(), x.end(), 0.0f), 2);
}

TEST(TableEncoder, LeavesOutAnIndexColumn) {
  const auto columns = [](const std::string& text) {
    const Table t = table(text);
    std::vector<int64_t> rows(static_cast<size_t>(t.rows));
    std::iota(rows.begin(), rows.end(), 0);
    std::vector<std::string> names;
    const TableEncoder encoder(t, rows, {});
    for (const TableFeature& feature : encoder.features()) names.push_back(feature.column);
    return names;
  };
  EXPECT_EQ(columns(",a,y\n0,5,1\n1,6,2\n2,7,3\n"), (std::vector<std::string>{"a"}));
  EXPECT_EQ(columns("Unnamed: 0,a,y\n0,5,1\n1,6,2\n2,7,3\n"), (std::vector<std::string>{"a"}));
  // Others are columns like any other.
  EXPECT_EQ(columns(",a,y\n0,5,1\n1,6,2\n3,7,3\n"), (std::vector<std::string>{"column 1", "a"}));
  EXPECT_EQ(columns("n,a,y\n0,5,1\n1,6,2\n2,7,3\n"), (std::vector<std::string>{"n", "a"}));
  EXPECT_EQ(columns("0,5,1\n1,6,2\n2,7,3\n"), (std::vector<std::string>{"column 1", "column 2"}));
}

TEST(TableEncoder, DatesBecomeElapsedTimeAndCalendarFields) {
  const TemporaryFolder folder;
  const Table t = table("when,y\n2024-01-01 00:00,1\n2024-07-02 06:00,2\n,3\n2025-12-31T18:00,4\n");
  const TableEncoder encoder(t, {0, 1, 2, 3}, {});
  ASSERT_EQ(encoder.features().size(), 1u);
  EXPECT_EQ(encoder.features()[0].kind, TableFeature::Kind::date);
  ASSERT_EQ(encoder.width(), 9);  // elapsed, year, month x 2, weekday x 2, hour x 2, missing
  const DatasetPtr set = encoder.encode(t, {0, 1, 2, 3});
  const std::vector<float> first = sample(*set, 0).x;
  EXPECT_LT(first[0], 0);
  EXPECT_EQ(first[2], 0);  // January and Monday begin their circles
  EXPECT_EQ(first[3], 1);
  EXPECT_EQ(first[4], 0);
  EXPECT_EQ(first[5], 1);
  EXPECT_NEAR(sample(*set, 1).x[6], 1, 1e-6);  // six o'clock
  EXPECT_EQ(sample(*set, 2).x, (std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 1}));
  encoder.save(folder / "table.json");
  const auto loaded = TableEncoder::load(folder / "table.json");
  const TableEncoder::Rows rows(*loaded, {"when"}, "new.csv");
  std::vector<float> x(9);
  UnseenNames unseen;
  rows.encode(std::vector<std::string_view>{"2024-07-02 06:00"}, 2, x.data(), unseen);
  EXPECT_EQ(x, sample(*set, 1).x);
  EXPECT_NE(artel::error_of([&] {
              rows.encode(std::vector<std::string_view>{"soon"}, 2, x.data(), unseen);
            }).find("column 'when' is 'soon', expected a date (year-month-day)"),
            std::string::npos);
  // A user who wants names gets names.
  EXPECT_EQ(TableEncoder(t, {0, 1, 2, 3}, {.categorical = {"when"}}).features()[0].kind,
            TableFeature::Kind::names);
}

TEST(TableReport, WarnsOfWhatMayNotBeMeant) {
  std::string text = "id;price;day;same;far;colour;y\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("{};{},5;2024-05-{:02};7;{};{};{}\n", i, i % 9, i % 28 + 1,
                        i == 3 ? "1e39" : "2.5", i % 2 ? "red" : "blue", i < 2 ? "" : "1.5");
  const std::vector<ColumnReport> report = describe_columns(table(text), {});
  const std::vector<std::string> expected = {
      "like an id", "decimal commas", "", "constant", "far from all others", "", "2 rows left out"};
  ASSERT_EQ(report.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NE(report[i].warning.find(expected[i]), std::string::npos) << report[i].warning;
    EXPECT_EQ(report[i].warning.empty(), expected[i].empty()) << report[i].warning;
  }
  EXPECT_EQ(report[2].use, "date");
  EXPECT_EQ(report[5].use, "2 names");
  EXPECT_EQ(describe_columns(table("a;y\n1;2,5\n2;3,5\n"), {})[1].warning,
            "numbers with decimal commas count as classes; set data.decimal_comma = true");
}

}  // namespace
}  // namespace artel::data
