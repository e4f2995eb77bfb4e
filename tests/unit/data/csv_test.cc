// CSV files.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "artel/base/file.h"
#include "artel/data/sets.h"
#include "artel/data/tables/csv_reader.h"
#include "artel/data/tables/number.h"
#include "tests/support/error_of.h"
#include "tests/support/samples.h"
#include "tests/support/small_disk.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/data/csv_text.h"

namespace artel::data {
namespace {

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
        artel::error_of([&] { table(fmt::format("a,b\n1,2\n{},3\n", infinite)); }),
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
    return artel::error_of(
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
  // A table that fits stays in memory.
  parse_csv(bytes, {.most_memory = 1 << 30, .spill_folder = folder / "none"});
  EXPECT_FALSE(std::filesystem::exists(folder / "none"));
}

// Written as memory, a disk without room would end the process by a signal.
TEST(Csv, ColumnsOnAFullDiskAreAnError) {
  const SmallDisk disk;
  if (!disk.mounted()) GTEST_SKIP() << "only root can mount a small disk";
  std::string text = "a,b,c\n";
  for (int row = 0; row < 100000; ++row) text += "1,2,3\n";
  const std::string said = artel::error_of([&] {
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
  EXPECT_NE(artel::error_of([&] { read_csv(folder / "*.csv"); }).find("d.csv] has no column 'y'"),
            std::string::npos);
  EXPECT_NE(artel::error_of([&] { read_csv(folder / "*.tsv"); }).find("no file matches"),
            std::string::npos);
}

TEST(Number, ShortOnesAreRoundedLikeLongOnes) {
  for (const char* text : {"0", "-0", "1", "0.1", "123456789012345", "-1.5", "99999.9999999999",
                           "0.000000000000001", "5.", ".5", "1234567.1234567"})
    EXPECT_EQ(*parse_number(text), std::strtod(text, nullptr)) << text;
  for (const char* text : {"", "-", ".", "1..2", "1-", "--1", "1,5"})
    EXPECT_FALSE(parse_number(text)) << text;
}

TEST(Csv, RefusesTwoColumnsOfOneName) {
  EXPECT_EQ(artel::error_of([] { table("a,b,a\n1,2,3\n"); }),
            "[x.csv] line 1: two columns are called 'a', expected different names; rename one");
}

TEST(Csv, NamesTheLineOfAMistake) {
  EXPECT_EQ(artel::error_of([] { table("a,b\n1,2\n\n1,2,3\n"); }),
            "[x.csv] line 4: got 3 fields, expected 2");
  EXPECT_EQ(artel::error_of([] { table("a,b\n1,\"2\n3"); }),
            "[x.csv] line 2: a quote is never closed");
  EXPECT_NE(artel::error_of([] { table("a,b\n1,\"2\"x\n"); }).find("line 2: text after"),
            std::string::npos);
  EXPECT_NE(artel::error_of([] { table("\n\n"); }).find("empty"), std::string::npos);
}

TEST(Csv, ReadsDecimalCommas) {
  const std::string text = "a;b;c\n1,5;-2,25e1;x,5\n;1.000,5;7,\n\"3,5\";4;1,2,3\n";
  const Table t = table(text, {.decimal_comma = true});
  ASSERT_FALSE(t.columns[0].categorical);
  EXPECT_EQ(t.columns[0].numbers[0], 1.5);
  EXPECT_TRUE(std::isnan(t.columns[0].numbers[1]));
  EXPECT_EQ(t.columns[0].numbers[2], 3.5);
  // A field that is not a number stays unchanged.
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
  const std::string why = artel::error_of([&] { t = read_csv(ARTEL_GOLDEN_DIR "/table.parquet"); });
  ::unsetenv("ARTEL_DATA");
  if (why != "") {
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
  EXPECT_NE(artel::error_of([&] {
              open_set("csv", {.path = folder / "b.csv"});
            }).find("no row has a target"),
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

}  // namespace
}  // namespace artel::data
