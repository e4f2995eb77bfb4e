#include "artel/run/report/export.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"
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
  void add_exhibits() {
    write_file_atomically(folder_ / "mistakes.png", "not really a picture");
    write_file_atomically(folder_ / "mistakes.json",
                          R"({"step": 2, "part": "test", "columns": 2, "tile_width": 28,
        "tile_height": 14, "mistakes": [
        {"sample": 1, "label": "<b>", "answer": "c", "probability": 0.5},
        {"sample": 2, "label": "d", "answer": "e", "probability": 0.25},
        {"sample": 3, "label": "f", "answer": "g", "probability": 0.125}]})");
    write_file_atomically(folder_ / "texts.jsonl",
                          "{\"step\":1,\"prompt\":\"Once\",\"text\":\" upon\"}\n"
                          "{\"step\":2,\"prompt\":\"Once\",\"text\":\" <script>\"}\nhalf");
  }
  TemporaryFolder folder_;
};

TEST_F(ExportTest, ATableHasALineForEachStep) {
  EXPECT_EQ(export_csv(folder_.path()),
            "step,seconds,test/loss,train/loss\n1,0.5,,2.5\n2,1.5,1.5,1.25\n");
}

TEST_F(ExportTest, JsonHasEverything) {
  const std::string line = export_json(folder_.path());
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  const auto json = nlohmann::json::parse(line);
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

TEST_F(ExportTest, APageShowsMistakesAndTexts) {
  EXPECT_EQ(export_html(folder_.path()).find("Mistakes"), std::string::npos);
  add_exhibits();
  const std::string page = export_html(folder_.path());
  EXPECT_NE(page.find("data:image/png;base64,bm90IHJlYWxseSBhIHBpY3R1cmU="), std::string::npos);
  EXPECT_NE(page.find("background-position:-0px -46px\"></div>f<br><b>g</b> 12.5 %"),
            std::string::npos);
  EXPECT_NE(page.find("&lt;b&gt;<br><b>c</b> 50.0 %"), std::string::npos);
  EXPECT_LT(page.find("step 2:\nOnce &lt;script&gt;"), page.find("step 1:\nOnce upon"));
  EXPECT_EQ(page.find("<script"), std::string::npos);
  const auto json = nlohmann::json::parse(export_json(folder_.path()));
  EXPECT_EQ(json["mistakes"]["mistakes"].size(), 3u);
  EXPECT_EQ(json["texts"].size(), 2u);
}

// Broken files do not affect the rest of the page.
TEST_F(ExportTest, BrokenMistakesAreLeftOut) {
  add_exhibits();
  for (const char* text : {"", "[1]", "{\"columns\": \"x\"}", "{\"columns\": 0}",
                           R"({"columns":1,"tile_width":1,"tile_height":1,"mistakes":[7]})"}) {
    write_file_atomically(folder_ / "mistakes.json", text);
    const std::string page = export_html(folder_.path());
    EXPECT_EQ(page.find("Mistakes"), std::string::npos) << text;
    EXPECT_NE(page.find("Configuration"), std::string::npos);
  }
}

TEST_F(ExportTest, OtherFoldersAreRefused) {
  EXPECT_THROW(export_csv(folder_ / "nothing"), Error);
  EXPECT_THROW(export_html(folder_ / "nothing"), Error);
}

}  // namespace
}  // namespace artel
