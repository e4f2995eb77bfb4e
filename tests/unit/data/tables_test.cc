// CSV, libsvm, text and arrays.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>

#include "artel/base/file.h"
#include "artel/data/csv_reader.h"
#include "artel/data/libsvm.h"
#include "artel/data/number.h"
#include "artel/data/sets.h"
#include "artel/data/table_report.h"
#include "artel/data/text.h"
#include "artel/tensor/npy.h"
#include "tests/support/samples.h"
#include "tests/support/small_disk.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

Table table(const std::string& text, const CsvOptions& options = {}) {
  return parse_csv(make_bytes(text, "x.csv"), {.csv = options});
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
  // Nothing shows that this is a header.
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

// Small pieces on several threads give what one piece gives, wherever they are cut.
TEST(Csv, PiecesAreTheWhole) {
  std::string text = "number,word,late,quoted\n";
  for (int i = 0; i < 400; ++i)
    text += fmt::format("{},{},{},{}\n", i * 0.25, i % 7 ? fmt::format("w{}", i % 5) : "?",
                        i < 250 ? std::to_string(i) : "word",
                        i % 3 ? "\"two\nlines, \"\"here\"\"\"" : "plain");
  // A quote inside of a field opens nothing, but looks as if it did.
  const std::string stray = text + "1,5\" pipe,2,x\n" + text.substr(text.find('\n') + 1);
  for (const std::string& content : {text, stray}) {
    const Table whole = parse_csv(make_bytes(content, "x.csv"), {.threads = 1});
    for (const size_t bytes : {1, 7, 64, 1000, 5000}) {
      const Table pieces =
          parse_csv(make_bytes(content, "x.csv"), {.threads = 3, .piece_bytes = bytes});
      ASSERT_EQ(pieces.rows, whole.rows) << bytes;
      for (size_t c = 0; c < whole.columns.size(); ++c) {
        EXPECT_EQ(pieces.columns[c].categorical, c > 0);
        EXPECT_EQ(pieces.columns[c].numbers, whole.columns[c].numbers) << bytes;
        EXPECT_EQ(pieces.columns[c].codes, whole.columns[c].codes) << bytes;
        EXPECT_EQ(pieces.columns[c].categories, whole.columns[c].categories) << bytes;
      }
    }
  }
  // Errors name the same line, and so do infinite numbers their row.
  const std::string wrong = text + "1,2\n" + text.substr(text.find('\n') + 1);
  const auto error = [&](const std::string& content, size_t bytes) {
    return reason(
        [&] { parse_csv(make_bytes(content, "x.csv"), {.threads = 3, .piece_bytes = bytes}); });
  };
  EXPECT_NE(error(wrong, 1 << 20).find("got 2 fields, expected 4"), std::string::npos);
  EXPECT_EQ(error(wrong, 100), error(wrong, 1 << 20));
  const std::string infinite = "a,b\n1,2\n3,4\n1e999,2\n5,6\n";
  EXPECT_NE(error(infinite, 1).find("row 3: column 'a' is 1e999"), std::string::npos);
}

// The file that some memory of this process is; empty: none.
std::string file_at(const void* memory) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::string protection, offset, device, inode, path;
    words >> std::hex >> begin >> dash >> end >> protection >> offset >> device >> inode >> path;
    const auto at = reinterpret_cast<uintptr_t>(memory);
    if (begin <= at && at < end) return inode == "0" ? "" : path;
  }
  return "nowhere";
}

// Columns that lie in files have the bits of those in memory.
TEST(Csv, ColumnsMayLieInFiles) {
  constexpr int kRows = 50'000;
  const TemporaryFolder folder;
  std::string text = "a,b,c,word,late\n";
  for (int i = 0; i < kRows; ++i)
    text += fmt::format("{},{},{},w{},{}\n", i * 0.25, i % 9 ? std::to_string(i % 1000) : "", -i,
                        i % 20, i + 1 < kRows ? "1" : "x");
  const Bytes bytes = make_bytes(std::move(text), "x.csv");
  const size_t piece_bytes = 64 << 10;
  const Table whole = parse_csv(bytes, {.threads = 2, .piece_bytes = piece_bytes});
  const Table spilled = parse_csv(bytes, {.threads = 2,
                                          .piece_bytes = piece_bytes,
                                          .most_memory = 1 << 20,
                                          .spill_folder = folder / "columns"});
  EXPECT_TRUE(std::filesystem::is_empty(folder / "columns"));
  ASSERT_EQ(spilled.rows, kRows);
  for (size_t c = 0; c < whole.columns.size(); ++c) {
    const auto bits = [](const auto& values) {
      return std::string(reinterpret_cast<const char*>(values.data()),
                         values.size() * sizeof(*values.data()));
    };
    EXPECT_EQ(spilled.columns[c].categorical, c > 2);
    const auto place = [&](const Table& t) {
      return file_at(c > 2 ? static_cast<const void*>(t.columns[c].codes.data())
                           : t.columns[c].numbers.data());
    };
    EXPECT_EQ(place(whole), "") << c;
    EXPECT_TRUE(place(spilled).starts_with((folder / "columns").string())) << place(spilled);
    EXPECT_EQ(bits(spilled.columns[c].numbers), bits(whole.columns[c].numbers)) << c;
    EXPECT_EQ(bits(spilled.columns[c].codes), bits(whole.columns[c].codes)) << c;
    EXPECT_EQ(spilled.columns[c].categories, whole.columns[c].categories) << c;
  }
  // What fits stays in memory.
  parse_csv(bytes, {.most_memory = 1 << 30, .spill_folder = folder / "none"});
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

// Written as memory, a disk without room would end the process by a signal.
TEST(Csv, ColumnsOnAFullDiskAreAnError) {
  const SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  std::string text = "a,b,c\n";
  for (int row = 0; row < 100000; ++row) text += "1,2,3\n";
  const std::string said = reason([&] {
    parse_csv(make_bytes(text, "x.csv"), {.most_memory = 1000, .spill_folder = disk.path()});
  });
  EXPECT_TRUE(said.starts_with(fmt::format("[{}] has no room for", disk.path().string()))) << said;
  EXPECT_NE(said.find("No space left on device; set ARTEL_DATA"), std::string::npos) << said;
}

TEST(Csv, ReadsSeveralFiles) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "a.csv", "x,kind,y\n1,red,2\n3,blue,4\n");
  write_file_atomically(folder / "b.csv", "y;x;kind\n6;5;red\n");
  write_file_atomically(folder / "c.txt", "none of them");
  const Table all = read_csv(folder / "*.csv");
  EXPECT_EQ(all.rows, 3);
  EXPECT_EQ(all.columns.at(0).numbers, (std::vector<double>{1, 3, 5}));
  EXPECT_EQ(all.columns.at(1).codes, (std::vector<int32_t>{1, 0, 1}));
  EXPECT_EQ(all.columns.at(2).numbers, (std::vector<double>{2, 4, 6}));
  write_file_atomically(folder / "d.csv", "x,kind,z\n1,red,2\n");
  EXPECT_NE(reason([&] { read_csv(folder / "*.csv"); }).find("d.csv] has no column 'y'"),
            std::string::npos);
  EXPECT_NE(reason([&] { read_csv(folder / "*.tsv"); }).find("no file matches"), std::string::npos);
}

TEST(Number, ShortOnesAreRoundedLikeLongOnes) {
  for (const char* text : {"0", "-0", "1", "0.1", "123456789012345", "-1.5", "99999.9999999999",
                           "0.000000000000001", "5.", ".5", "1234567.1234567"})
    EXPECT_EQ(*parse_number(text), std::strtod(text, nullptr)) << text;
  for (const char* text : {"", "-", ".", "1..2", "1-", "--1", "1,5"})
    EXPECT_FALSE(parse_number(text)) << text;
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
  EXPECT_NE(reason([&] {
              TableEncoder(t, {0, 1, 2}, {.scale_target = false});
            }).find("try subtracting 1.6e+09"),
            std::string::npos);
  const Table far = table("x,y\n1,1e39\n2,2.5\n");
  EXPECT_NE(reason([&] {
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
  EXPECT_NE(reason([&] { TableEncoder(t, {0}, {.ignore = {"idd"}}); }).find("did you mean 'id'"),
            std::string::npos);
  EXPECT_NE(reason([&] { TableEncoder(t, {0}, {.ignore = {"y"}}); }).find("target 'y'"),
            std::string::npos);
}

// What was saved encodes raw rows of other files as the training rows were encoded.
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
  EXPECT_NE(reason([&] {
              rows.encode(std::vector<std::string_view>{"u", "", "many"}, 7, x.data(), unseen);
            }).find("[new.csv] line 7: column 'n' is 'many', expected a number"),
            std::string::npos);
  EXPECT_NE(reason([&] { TableEncoder::Rows(*loaded, {"c"}, "new.csv"); }).find("no column 'n'"),
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
  EXPECT_NE(reason([&] {
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

TEST(Csv, ReadsDecimalCommas) {
  const std::string text = "a;b;c\n1,5;-2,25e1;x,5\n;1.000,5;7,\n\"3,5\";4;1,2,3\n";
  const Table t = table(text, {.decimal_comma = true});
  ASSERT_FALSE(t.columns[0].categorical);
  EXPECT_EQ(t.columns[0].numbers[0], 1.5);
  EXPECT_TRUE(std::isnan(t.columns[0].numbers[1]));
  EXPECT_EQ(t.columns[0].numbers[2], 3.5);
  // What is no number stays as it is.
  EXPECT_EQ(t.columns[1].categories, (std::vector<std::string>{"-2.25e1", "1.000,5", "4"}));
  EXPECT_EQ(t.columns[2].categories, (std::vector<std::string>{"1,2,3", "7.", "x,5"}));
  EXPECT_TRUE(table(text).columns[0].categorical);
  // Numbers in the first line are no names.
  EXPECT_EQ(table("1,5;2,5\n3,5;4,5\n", {.separator = ';', .decimal_comma = true}).rows, 2);
}

// As a table where Arrow is installed; elsewhere what would be needed is said.
TEST(Parquet, IsATableOrIsRefusedByName) {
  const TemporaryFolder folder;
  ::setenv("ARTEL_DATA", folder.path().c_str(), 1);
  Table t;
  const std::string why = reason([&] { t = read_csv(ARTEL_GOLDEN_DIR "/table.parquet"); });
  ::unsetenv("ARTEL_DATA");
  if (why != "accepted") {
    EXPECT_NE(why.find("table.parquet] is a Parquet file"), std::string::npos) << why;
    EXPECT_NE(why.find("Arrow's C++ library"), std::string::npos) << why;
    return;
  }
  ASSERT_EQ(t.rows, 4);
  EXPECT_EQ(t.columns[0].numbers[2], 2.25);
  EXPECT_TRUE(std::isnan(t.columns[0].numbers[1]));
  EXPECT_EQ(t.columns[1].categories, (std::vector<std::string>{"Oslo", "Rome"}));
  EXPECT_EQ(t.columns[1].codes[2], -1);
  EXPECT_EQ(t.columns[2].numbers[3], 4);
}

TEST(Csv, LeavesOutRowsWithoutATarget) {
  const TemporaryFolder folder;
  std::string text = "x,y\n";
  for (int i = 0; i < 20; ++i)
    text += fmt::format("{},{}\n", i, i % 5 == 0 ? "" : i % 2 ? "a" : "b");
  write_file_atomically(folder / "a.csv", text);
  const auto [train, test] = open_set("csv", {.path = folder / "a.csv", .test_fraction = 0.25});
  EXPECT_EQ(train->size() + test->size(), 16);
  write_file_atomically(folder / "b.csv", "x,y\n1,\n2,\n");
  EXPECT_NE(
      reason([&] { open_set("csv", {.path = folder / "b.csv"}); }).find("no row has a target"),
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
  EXPECT_NE(reason([&] { set->read(0, none, none); }).find("do not fit into dense samples"),
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
  // As many numbers, in other parts.
  write_npz(folder / "b.npz", {{"x_train", Tensor({2, 3})},
                               {"x2_train", Tensor({2, 2})},
                               {"y_train", labels},
                               {"x_test", Tensor({2, 2})},
                               {"x2_test", Tensor({2, 3})},
                               {"y_test", labels}});
  const std::string said = reason([&] { open_set("npz", {.path = folder / "b.npz"}); });
  EXPECT_NE(said.find("test samples are f32 [5] of x [2] and x2 [3], expected f32 [5] of x [3] and "
                      "x2 [2] as for training"),
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
        reason([&] {
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
  EXPECT_NE(reason([&] {
              join_inputs({{"x", set}, {"x2", tokens}});
            }).find("input 'x2' holds i32, expected f32 like 'x': the inputs of a sample are all"),
            std::string::npos);
  const DatasetPtr three = tensor_dataset(Tensor({3, 3}), Tensor());
  EXPECT_EQ(reason([&] {
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
      reason([&] {
        large->read(0, std::as_writable_bytes(std::span(one)), {});
      }).starts_with("a token of the data set is 2147483648, expected a number of 32 bits"));
}

// Nothing that is meant as an input or a target is left out in silence.
TEST(Npz, RefusesLabelsOf64Bits) {
  const Tensor labels = Tensor::from<int64_t>({2}, {1, (int64_t{1} << 32) + 1});
  EXPECT_NE(reason([&] {
              tensor_dataset(Tensor({2, 1}), labels);
            }).find("label 1 of the data set is 4294967297"),
            std::string::npos);
}

TEST(Npz, EveryInputAndTargetHasAMeaning) {
  const TemporaryFolder folder;
  const Tensor x({4, 2}), y({4}, DType::i32);
  const auto said = [&](const NamedTensors& arrays) {
    write_npz(folder / "a.npz", arrays);
    return reason([&] { open_set("npz", {.path = folder / "a.npz"}); });
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
  EXPECT_EQ(said({{"x", x}, {"y", y}, {"yields", y}}), "accepted");
}

TEST(Sets, NamesTheNearestAndHowToGetIt) {
  EXPECT_TRUE(reason([] {
                open_set("minst");
              }).starts_with("unknown data set 'minst'; did you mean 'mnist'?; known: mnist, "));
  EXPECT_NE(reason([] { open_set("csv"); }).find("data.path"), std::string::npos);
}

}  // namespace
}  // namespace artel::data
