#include "artel/checkpoint/checkpoint.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "artel/base/file.h"
#include "artel/checkpoint/compare.h"
#include "artel/checkpoint/safetensors.h"
#include "artel/checkpoint/weights.h"
#include "tests/support/file_limit.h"
#include "tests/support/temporary_folder.h"

namespace artel::checkpoint {
namespace {

Checkpoint at(int64_t step) {
  const auto value = static_cast<float>(step);
  return {step,
          {{"w", Tensor::from<float>({2}, {value, 1})}},
          {{"w.momentum", Tensor::from<float>({2}, {0, value})}},
          "{\"epoch\":3}"};
}

std::vector<std::string> names(const std::filesystem::path& folder) {
  std::vector<std::string> result;
  for (const auto& path : list_checkpoints(folder)) result.push_back(path.filename().string());
  return result;
}

// Hidden ones, too.
std::vector<std::string> everything(const std::filesystem::path& folder) {
  std::vector<std::string> result;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    result.push_back(entry.path().filename().string());
  std::sort(result.begin(), result.end());
  return result;
}

void damage(const std::filesystem::path& path) {
  std::string content = read_file(path);
  content.back() ^= 1;
  write_file_atomically(path, content);
}

TEST(Checkpoint, ComesBack) {
  const TemporaryFolder folder;
  EXPECT_FALSE(load_newest(folder / "none"));
  save_checkpoint(folder / "c", at(5));
  save_checkpoint(folder / "c", at(12));
  const Newest newest = load_newest(folder / "c").value();
  EXPECT_EQ(newest.checkpoint.step, 12);
  EXPECT_EQ(newest.checkpoint.state, "{\"epoch\":3}");
  EXPECT_FALSE(compare(newest.checkpoint.weights, at(12).weights));
  EXPECT_FALSE(compare(newest.checkpoint.optimizer, at(12).optimizer));
  EXPECT_TRUE(newest.refused.empty());
}

TEST(Checkpoint, KeepsTheLastAndTheBest) {
  const TemporaryFolder folder;
  for (int64_t step = 1; step <= 5; ++step)
    save_checkpoint(folder.path(), at(step), {.keep_last = 2, .best = step == 2});
  EXPECT_EQ(names(folder.path()),
            (std::vector<std::string>{"step-000000002", "step-000000004", "step-000000005"}));
  EXPECT_EQ(best_checkpoint(folder.path())->filename(), "step-000000002");
}

TEST(Checkpoint, ReplacesOneOfTheSameStep) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), at(1));
  Checkpoint other = at(1);
  other.weights[0].tensor = Tensor::from<float>({1}, {9});
  save_checkpoint(folder.path(), other);
  EXPECT_EQ(load_newest(folder.path())->checkpoint.weights[0].tensor.elements(), 1);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1);
}

TEST(Checkpoint, RefusesDamageAndOffersThePreviousOne) {
  for (const char* file : {"model.safetensors", "optimizer.safetensors", "checkpoint.json"}) {
    for (const char* how : {"damaged", "truncated", "missing"}) {
      const TemporaryFolder folder;
      save_checkpoint(folder.path(), at(1));
      const auto path = save_checkpoint(folder.path(), at(2)) / file;
      if (std::string(how) == "missing")
        std::filesystem::remove(path);
      else if (std::string(how) == "truncated" || std::string(file) == "checkpoint.json")
        std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
      else
        damage(path);
      const Newest newest = load_newest(folder.path()).value();
      EXPECT_EQ(newest.checkpoint.step, 1) << file << " " << how;
      ASSERT_EQ(newest.refused.size(), 1u);
      EXPECT_NE(newest.refused[0].find(file), std::string::npos) << newest.refused[0];
    }
  }
}

TEST(Checkpoint, RefusesAManifestThatWasChanged) {
  const std::pair<const char*, const char*> changes[] = {
      {"\"step\": 2", "\"step\": 1e300"},   {"\"step\": 2", "\"step\": -2"},
      {"\"step\": 2", "\"step\": 7"},       {"\"epoch\": 3", "\"epoch\": 4"},
      {"\"version\": 2", "\"version\": 3"}, {"\"crc32\": \"", "\"crc32\": \"0"}};
  for (const auto& [from, to] : changes) {
    const TemporaryFolder folder;
    save_checkpoint(folder.path(), at(1));
    const auto path = save_checkpoint(folder.path(), at(2)) / "checkpoint.json";
    std::string text = read_file(path);
    ASSERT_NE(text.find(from), text.npos) << text;
    write_file_atomically(path, text.replace(text.find(from), std::strlen(from), to));
    const Newest newest = load_newest(folder.path()).value();
    EXPECT_EQ(newest.checkpoint.step, 1) << to;
    EXPECT_EQ(newest.refused.size(), 1u) << to;
  }
}

TEST(Checkpoint, ReadsManifestsWithoutAChecksum) {
  const TemporaryFolder folder;
  const auto path = save_checkpoint(folder.path(), at(2)) / "checkpoint.json";
  std::string text = read_file(path);
  const size_t begin = text.find("  \"crc32\": \""), end = text.find('\n', begin) + 1;
  write_file_atomically(path, text.erase(begin, end - begin));
  EXPECT_EQ(load_newest(folder.path())->checkpoint.step, 2);
}

TEST(Checkpoint, ThrowsIfNoneIsGood) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder / "step-000000001");
  write_file_atomically(folder / "step-000000001/checkpoint.json", "{\"format\":\"other\"}");
  EXPECT_THROW(load_newest(folder.path()), Error);
}

TEST(Checkpoint, IgnoresHalfWrittenOnes) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), at(1));
  std::filesystem::create_directories(folder / ".step-000000002.new");
  EXPECT_EQ(names(folder.path()), (std::vector<std::string>{"step-000000001"}));
  save_checkpoint(folder.path(), at(2));
  EXPECT_EQ(load_newest(folder.path())->checkpoint.step, 2);
  EXPECT_EQ(everything(folder.path()),
            (std::vector<std::string>{"step-000000001", "step-000000002"}));
}

TEST(Checkpoint, LeavesTheOthersAloneIfItCannotBeSaved) {
  const TemporaryFolder folder;
  save_checkpoint(folder.path(), at(1), {.keep_last = 1, .best = true});
  Checkpoint large = at(2);
  large.optimizer[0].tensor = Tensor({1000});
  {
    const FileLimit full(1024);  // less than the state of the optimizer
    try {
      save_checkpoint(folder.path(), large, {.keep_last = 1, .best = true});
      FAIL() << "saved beyond the limit";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::io) << error.what();
    }
  }
  EXPECT_EQ(everything(folder.path()), (std::vector<std::string>{"best", "step-000000001"}));
  EXPECT_EQ(load_newest(folder.path())->checkpoint.step, 1);
  save_checkpoint(folder.path(), large, {.keep_last = 1, .best = true});
  EXPECT_EQ(everything(folder.path()), (std::vector<std::string>{"best", "step-000000002"}));
}

// A file where a folder should be: what the standard library throws has our form, too.
TEST(Checkpoint, SaysWhereItCannotBeSaved) {
  const TemporaryFolder folder;
  write_file_atomically(folder / "file", "");
  try {
    save_checkpoint(folder / "file/checkpoints", at(1));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::io);
    EXPECT_TRUE(std::string(error.what()).starts_with("[" + folder.path().string()))
        << error.what();
  }
}

// A crash between the two renames that replace a checkpoint.
TEST(Checkpoint, PutsBackWhatWasBeingReplaced) {
  const TemporaryFolder folder;
  const auto path = save_checkpoint(folder.path(), at(1));
  std::filesystem::rename(path, folder / ".step-000000001.old");
  std::filesystem::create_directories(folder / ".step-000000001.new");
  std::filesystem::create_directories(folder / ".other.new");
  sweep(folder.path());
  EXPECT_EQ(load_newest(folder.path())->checkpoint.step, 1);
  EXPECT_EQ(everything(folder.path()), (std::vector<std::string>{".other.new", "step-000000001"}));
  sweep(folder / "none");
}

TEST(Compare, NamesTheFirstDifference) {
  const NamedTensors a = {{"x", Tensor::from<float>({2}, {1, 0.25f})}};
  EXPECT_FALSE(compare(a, {{"x", Tensor::from<float>({2}, {1, 0.25f})}}));
  EXPECT_EQ(compare(a, {{"x", Tensor::from<float>({2}, {1, 0.5f})}})->describe(),
            "x[1]: 0.25 (0x3e800000) and 0.5 (0x3f000000)");
  EXPECT_EQ(compare(a, {{"x", Tensor({2}, DType::f64)}})->describe(), "x: f32 [2] and f64 [2]");
  EXPECT_EQ(compare(a, {{"y", Tensor()}})->describe(), "x: f32 [2] and absent");
  EXPECT_EQ(compare({}, a)->describe(), "x: absent and f32 [2]");
  const NamedTensors zero = {{"x", Tensor::from<float>({1}, {0.0f})}};
  EXPECT_TRUE(compare(zero, {{"x", Tensor::from<float>({1}, {-0.0f})}}));
}

TEST(Compare, FindsCheckpointsAndFiles) {
  const TemporaryFolder folder;
  save_checkpoint(folder / "a/checkpoints", at(1));
  save_checkpoint(folder / "b", at(1));
  EXPECT_FALSE(compare_checkpoints(folder / "a", folder / "b"));
  Checkpoint other = at(1);
  other.optimizer[0].tensor.values<float>()[0] = 3;
  const auto path = save_checkpoint(folder / "c", other);
  EXPECT_EQ(compare_checkpoints(folder / "a", path)->describe(),
            "optimizer: w.momentum[0]: 0 (0x00000000) and 3 (0x40400000)");
  save_weights(folder / "w.npz", at(1).weights);
  save_weights(folder / "w.safetensors", at(1).weights);
  EXPECT_FALSE(compare_checkpoints(folder / "w.npz", folder / "w.safetensors"));
  EXPECT_THROW(compare_checkpoints(folder.path(), folder / "a"), Error);
}

TEST(Weights, AreRecognisedByContent) {
  const TemporaryFolder folder;
  const NamedTensors weights = {{"tensor", Tensor::from<float>({2}, {1, 2})}};
  for (const char* name : {"w.safetensors", "w.npz", "w.npy"}) {
    save_weights(folder / name, weights);
    std::filesystem::rename(folder / name, folder / "other.bin");
    EXPECT_FALSE(compare(load_weights(folder / "other.bin"), weights)) << name;
  }
  EXPECT_THROW(save_weights(folder / "w.txt", weights), Error);
  write_file_atomically(folder / "other.bin", "something else");
  EXPECT_THROW(load_weights(folder / "other.bin"), Error);
}

TEST(Weights, MatchListsWhatDoesNotFit) {
  const NamedTensors found = {{"conv1.weight", Tensor({8, 1, 3, 3})},
                              {"fc.wieght", Tensor({10, 8})},
                              {"fc.bias", Tensor({12})}};
  const Match result =
      match({{"conv1.weight", {8, 1, 3, 3}}, {"fc.weight", {10, 8}}, {"fc.bias", {10}}}, found);
  EXPECT_FALSE(result.complete());
  EXPECT_EQ(result.report(),
            "missing in the file (1):\n"
            "  fc.weight; did you mean 'fc.wieght'?\n"
            "not in the model (1):\n"
            "  fc.wieght\n"
            "different shapes (1):\n"
            "  fc.bias: got [12], expected [10]\n");
  const Match good = match({{"fc.bias", {12}}}, found);
  EXPECT_TRUE(good.complete());
}

TEST(Checkpoint, NamesBothVersionsOfAnotherFormat) {
  const TemporaryFolder folder;
  const std::filesystem::path saved = save_checkpoint(folder.path(), at(1), {});
  std::string manifest = read_file(saved / "checkpoint.json");
  const std::string mine = "\"version\": 2";
  ASSERT_NE(manifest.find(mine), std::string::npos);
  manifest.replace(manifest.find(mine), mine.size(), "\"version\": 7");
  write_file_atomically(saved / "checkpoint.json", manifest);
  try {
    load_checkpoint(saved);
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_NE(std::string(error.what()).find("got version 7, expected 1 to 2"), std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace artel::checkpoint
