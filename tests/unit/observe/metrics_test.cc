#include "artel/observe/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/json_values.h"

namespace artel::observe {
namespace {

class MetricsTest : public testing::Test {
 protected:
  MetricsTest() {
    folder_ = std::filesystem::temp_directory_path() /
              (std::string("artel_metrics_") +
               testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
  }
  ~MetricsTest() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

// Vectors of RFC 3720, appendix B.4, and the usual check value.
TEST(EventFile, Crc32c) {
  EXPECT_EQ(crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(crc32c(""), 0u);
}

// Every event file of TensorFlow begins with these bytes: the length of the version record, 24, and
// the masked checksum of that length.
TEST(EventFile, RecordFraming) {
  const std::string message = encode_file_version(1.5);
  const std::string record = tfrecord(message);
  EXPECT_EQ(record.substr(0, 12), std::string("\x18\0\0\0\0\0\0\0\xa3\x7f\x4b\x22", 12));
  EXPECT_EQ(record.substr(12, message.size()), message);
  EXPECT_EQ(record.size(), 16 + message.size());
}

// Fields by number and wire type, as the message definitions say.
TEST(EventFile, Messages) {
  EXPECT_EQ(encode_file_version(1.5), std::string("\x09\0\0\0\0\0\0\xf8\x3f"
                                                  "\x1a\x0d"
                                                  "brain.Event:2",
                                                  24));
  EXPECT_EQ(encode_scalars(0, 300, {{"loss", 0.5}}),
            std::string("\x09\0\0\0\0\0\0\0\0"  // wall_time
                        "\x10\xac\x02"          // step
                        "\x2a\x0d\x0a\x0b"      // summary { value {
                        "\x0a\x04loss"          //   tag
                        "\x15\0\0\0\x3f",       //   simple_value
                        27));
  EXPECT_EQ(encode_start(0, 1).substr(9), "\x10\x01\x3a\x02\x08\x01");
}

TEST_F(MetricsTest, WritesLinesAndEvents) {
  {
    MetricsWriter writer(folder_);
    writer.write(1, {{"train/loss", 0.5}, {"train/accuracy", NAN}});
    writer.write(2, {{"train/loss", 0.25}});
  }
  const auto metrics = read_metrics(folder_);
  EXPECT_EQ(metrics.at("train/loss"),
            (std::vector<std::pair<int64_t, double>>{{1, 0.5}, {2, 0.25}}));
  EXPECT_FALSE(metrics.contains("train/accuracy"));
  const std::string lines = read_file(folder_ / "metrics.jsonl");
  const auto first = nlohmann::json::parse(lines.substr(0, lines.find('\n')));
  EXPECT_EQ(first["step"], 1);
  EXPECT_TRUE(first["train/accuracy"].is_null());

  // The event file: four records whose lengths add up to the file.
  int events = 0, records = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_)) {
    if (!entry.path().filename().string().starts_with("events.out.tfevents.")) continue;
    ++events;
    const std::string bytes = read_file(entry.path());
    size_t at = 0;
    for (; at < bytes.size(); ++records) {
      const auto length = static_cast<uint8_t>(bytes[at]);
      ASSERT_EQ(tfrecord(bytes.substr(at + 12, length)), bytes.substr(at, 16 + length));
      at += 16 + length;
    }
    EXPECT_EQ(at, bytes.size());
  }
  EXPECT_EQ(events, 1);
  EXPECT_EQ(records, 4);
}

TEST_F(MetricsTest, ResumingDropsWhatWillBeWrittenAgain) {
  {
    MetricsWriter writer(folder_);
    for (int64_t step = 1; step <= 5; ++step) writer.write(step, {{"loss", 1}});
  }
  {
    std::ofstream(folder_ / "metrics.jsonl", std::ios::app) << "{\"step\": 6, \"lo";  // a crash
    MetricsWriter writer(folder_, 3);
    writer.write(4, {{"loss", 2}});
  }
  EXPECT_EQ(read_metrics(folder_).at("loss"),
            (std::vector<std::pair<int64_t, double>>{{1, 1}, {2, 1}, {3, 1}, {4, 2}}));
  MetricsWriter fresh(folder_);
  EXPECT_TRUE(read_metrics(folder_).empty());
}

TEST_F(MetricsTest, SecondsGoOnWhenARunIsResumed) {
  std::filesystem::create_directories(folder_);
  write_file_atomically(folder_ / "metrics.jsonl",
                        "{\"step\":1,\"seconds\":50}\n{\"step\":2,\"seconds\":100}\n");
  MetricsWriter(folder_, 1).write(2, {{"loss", 1}});
  const auto seconds = read_metrics(folder_).at("seconds");
  ASSERT_EQ(seconds.size(), 2);
  EXPECT_GE(seconds[1].second, 50);
  EXPECT_LT(seconds[1].second, 100);
}

TEST_F(MetricsTest, ALastLineThatACrashHasSpoiltIsLeftOut) {
  std::filesystem::create_directories(folder_);
  write_file_atomically(folder_ / "metrics.jsonl",
                        std::string("{\"step\":1,\"loss\":3}\n\0\0garbage\n", 30));
  MetricsWriter(folder_, 1).write(2, {{"loss", 2}});
  EXPECT_EQ(read_metrics(folder_).at("loss"),
            (std::vector<std::pair<int64_t, double>>{{1, 3}, {2, 2}}));
}

TEST_F(MetricsTest, NamesTheBrokenLine) {
  std::filesystem::create_directories(folder_);
  write_file_atomically(folder_ / "metrics.jsonl", "{\"step\": 1}\n[3]\n{\"step\": 2}\n");
  try {
    read_metrics(folder_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::corrupt);
    EXPECT_NE(std::string(error.what()).find("metrics.jsonl:2]"), std::string::npos);
  }
}

}  // namespace
}  // namespace artel::observe
