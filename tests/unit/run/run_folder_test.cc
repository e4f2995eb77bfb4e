#include "artel/run/folder/run_folder.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

TEST(RunFolder, ReadsItsOwnVersionAndThoseWithoutOne) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  folder.save_layout({.input = {3, 4}, .classes = 2});
  EXPECT_EQ(folder.load_layout().input, (Shape{3, 4}));
  write_file_atomically(folder.samples(),
                        R"({"input": [5], "type": "f32", "classes": 2, "class_names": []})");
  EXPECT_EQ(folder.load_layout().input, (Shape{5}));
}

TEST(RunFolder, NamesBothVersionsOfAnotherOne) {
  const TemporaryFolder temporary;
  const RunFolder folder(temporary.path());
  write_file_atomically(folder.samples(), R"({"version": 7, "input": [5]})");
  try {
    folder.load_layout();
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(std::string(error.what()).find("got version 7, expected 1"), std::string::npos)
        << error.what();
  }
}

TEST(RunFolder, NamesStayBelowRuns) {
  for (const char* name : {"../../x", "..", "a/../../x", "/tmp/x", "a\nb", "\x1b[31m", "./a"})
    EXPECT_THROW(choose_folder({.config = "a.toml", .out = "", .name = name, .resume = false}),
                 Error)
        << name;
  EXPECT_EQ(
      choose_folder({.config = "a.toml", .out = "", .name = "group/a..b", .resume = false}).path(),
      std::filesystem::path("runs/group/a..b"));
}

}  // namespace
}  // namespace artel
