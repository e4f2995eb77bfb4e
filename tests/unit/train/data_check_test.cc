// Large files are compared in the background: a run that begins with different ones stops at the
// next checkpoint and names them.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/cluster/differences.h"
#include "artel/data/file_digests.h"
#include "artel/train/loop/data_check.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

constexpr uintmax_t kLarge = 200'000'000;  // takes longer to read than a run takes to begin

// Digests of one file that ends with `last` and is read in the background.
std::shared_ptr<data::FileDigests> digests_of(const std::filesystem::path& folder, char last) {
  std::filesystem::create_directories(folder);
  const std::filesystem::path file = folder / "data.bin";
  write_file_atomically(file, "begin");
  std::filesystem::resize_file(file, kLarge);
  std::ofstream(file, std::ios::app) << last;
  return std::make_shared<data::FileDigests>(
      std::vector{file}, data::FileDigestOptions{.cache = {}, .most_at_once = 0});
}

struct ComparedRun {
  std::string error;
  int64_t steps = 0;
};

// Workers with files that end with these characters. Epochs have 3 steps, or 5 with batches of 8
// samples. `wait_after`: the step after which all workers have read their files; 0 for none.
std::vector<ComparedRun> train_with_files(const std::string& last_characters, int64_t batch = 13,
                                          int64_t steps = 20, int64_t wait_after = 3) {
  const TemporaryFolder folder;
  std::vector<ComparedRun> outcomes(last_characters.size());
  on_workers(static_cast<int>(last_characters.size()), [&](int rank, Cluster& cluster) {
    ComparedRun& outcome = outcomes[rank];
    Trainer trainer(cluster, network(), trainer_options({}));
    const auto files = digests_of(folder.path() / std::to_string(rank),
                                  last_characters[static_cast<size_t>(rank)]);
    EXPECT_FALSE(files->done());
    FitOptions fit = {.batch_size = batch, .epochs = 100, .steps = steps};
    fit.files = files;
    if (batch == 13) fit.save_every = 2;
    fit.after_step.push_back([&](const TrainingState& now) {
      outcome.steps = now.step;
      if (now.step == wait_after) files->wait();
      return true;
    });
    try {
      trainer.fit(samples(), fit);
    } catch (const Error& error) {
      outcome.error = error.what();
    }
  });
  return outcomes;
}

TEST(DataCheck, AnotherFileStopsTheRunAtTheNextCheckpoint) {
  for (const ComparedRun& outcome : train_with_files("aba")) {
    EXPECT_NE(outcome.error.find("worker 1 has 'file data.bin = 200000001 bytes, "),
              std::string::npos)
        << outcome.error;
    EXPECT_NE(outcome.error.find(", workers 0, 2 have 'file data.bin = "), std::string::npos);
    EXPECT_EQ(outcome.steps, 3);  // the end of the epoch
  }
}

TEST(DataCheck, AnotherFileStopsTheRunBetweenCheckpoints) {
  for (const ComparedRun& outcome : train_with_files("ab", 8)) {
    EXPECT_NE(outcome.error.find("worker 1 has 'file data.bin"), std::string::npos)
        << outcome.error;
    EXPECT_EQ(outcome.steps, 4);
  }
}

// Without a wait at the end, a run that is shorter than the reading would succeed.
TEST(DataCheck, AShortRunWaitsForTheComparison) {
  for (const ComparedRun& outcome : train_with_files("ab", 13, 2, 0)) {
    EXPECT_NE(outcome.error.find("worker 1 has 'file data.bin"), std::string::npos)
        << outcome.error;
    EXPECT_EQ(outcome.steps, 2);
  }
  for (const ComparedRun& outcome : train_with_files("aa", 13, 2, 0)) EXPECT_EQ(outcome.error, "");
}

TEST(DataCheck, AFileThatCannotBeReadInTheBackgroundIsAnError) {
  const TemporaryFolder folder;
  std::vector<std::string> errors(2);
  on_workers(2, [&](int rank, Cluster& cluster) {
    Trainer trainer(cluster, network(), trainer_options({}));
    const std::filesystem::path own = folder.path() / std::to_string(rank);
    digests_of(own, 'a');
    write_file_atomically(own / "later.bin", "some text");
    FitOptions fit = {.batch_size = 13, .epochs = 100, .steps = 2};
    fit.files = std::make_shared<data::FileDigests>(
        std::vector{own}, data::FileDigestOptions{.cache = {}, .most_at_once = 0});
    if (rank == 1) std::filesystem::remove(own / "later.bin");
    try {
      trainer.fit(samples(), fit);
    } catch (const Error& error) {
      errors[rank] = error.what();
    }
  });
  for (const std::string& error : errors) {
    EXPECT_NE(error.find("[data] worker 1 cannot read its data: "), std::string::npos) << error;
    EXPECT_NE(error.find("1/later.bin"), std::string::npos) << error;
  }
}

TEST(DataCheck, TheSameFilesLetARunEnd) {
  for (const ComparedRun& outcome : train_with_files("aa")) {
    EXPECT_EQ(outcome.error, "");
    EXPECT_EQ(outcome.steps, 20);
  }
}

// A newcomer sends its facts before it is known, so they are short. They name the neighbourhood of
// each file that differs or is missing.
TEST(DataCheck, FactsAboutManyFilesAreFewAndNameThePlace) {
  const TemporaryFolder folder;
  const auto facts = [&] {
    return DataCheck(std::make_shared<data::FileDigests>(std::vector{folder.path()},
                                                         data::FileDigestOptions{}))
        .facts();
  };
  for (int i = 0; i < 3000; ++i)
    std::ofstream(folder / fmt::format("{:04}.png", i)) << "picture " << i;
  const Facts before = facts();
  EXPECT_LT(to_text(before).size(), 100'000u);
  EXPECT_EQ(before.front(), (Facts::value_type{"files", "3000"}));

  std::ofstream(folder / "1234.png") << "another one";
  std::vector<Difference> found = differences(to_text(before), to_text(facts()));
  ASSERT_EQ(found.size(), 1u);
  const std::vector<std::string> words = split(found[0].key, ' ');  // "files A to B 0"
  EXPECT_LE(words.at(1), "1234.png");
  EXPECT_GE(words.at(3), "1234.png");

  std::filesystem::remove(folder / "1234.png");
  found = differences(to_text(before), to_text(facts()));
  EXPECT_LE(found.size(), 6u);
  EXPECT_EQ(found[0].own, "files = 3000");
  EXPECT_EQ(found[0].other, "files = 2999");
}

}  // namespace
}  // namespace artel
