#include "artel/run/export.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "tests/support/temporary_folder.h"

namespace artel {
namespace {

class ExportTest : public testing::Test {
 protected:
  ExportTest() {
    write_file_atomically(folder_ / "config.toml", "[data]\nset = \"mnist\"\n");
    write_file_atomically(
        folder_ / "metrics.jsonl",
        "{\"step\":1,\"seconds\":0.5,\"train/loss\":2.5}\n"
        "{\"step\":2,\"seconds\":1,\"train/loss\":1.25}\n"
        "{\"step\":2,\"seconds\":1,\"event\":\"slow\",\"text\":\"worker <1> is slow\"}\n"
        "{\"step\":2,\"seconds\":1.5,\"test/loss\":1.5}\n");
    write_file_atomically(folder_ / "summary.json",
                          "{\"step\": 2, \"loss\": 1.25, \"stopped_by\": \"<steps>\"}");
    write_file_atomically(folder_ / "notes.txt", "</pre><script>alert(1)</script>");
    write_file_atomically(folder_ / "confusion.svg", "<svg onload=\"alert(2)\"></svg>");
  }
  TemporaryFolder folder_;
};

TEST_F(ExportTest, ATableHasALineForEachStep) {
  EXPECT_EQ(export_csv(folder_.path()),
            "step,seconds,test/loss,train/loss\n1,0.5,,2.5\n2,1.5,1.5,1.25\n");
}

TEST_F(ExportTest, JsonHasEverything) {
  const auto json = nlohmann::json::parse(export_json(folder_.path()));
  EXPECT_EQ(json["status"], "finished");
  EXPECT_EQ(json["summary"]["loss"], 1.25);
  EXPECT_EQ(json["metrics"]["train/loss"], nlohmann::json::parse("[[1, 2.5], [2, 1.25]]"));
  EXPECT_EQ(json["events"][0]["text"], "worker <1> is slow");
}

TEST_F(ExportTest, NothingInAPageRuns) {
  const std::string page = export_html(folder_.path());
  EXPECT_EQ(page.find("<script"), std::string::npos);
  EXPECT_EQ(page.find("onload="), std::string::npos);
  EXPECT_NE(page.find("&lt;script&gt;"), std::string::npos);
  EXPECT_NE(page.find("worker &lt;1&gt; is slow"), std::string::npos);
  EXPECT_NE(page.find("src=\"data:image/svg+xml,"), std::string::npos);
}

TEST_F(ExportTest, OtherFoldersAreRefused) {
  EXPECT_THROW(export_csv(folder_ / "nothing"), Error);
  EXPECT_THROW(export_html(folder_ / "nothing"), Error);
}

}  // namespace
}  // namespace artel
