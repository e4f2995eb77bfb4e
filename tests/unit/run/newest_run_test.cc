// Workers whose machines have folders of the same name: worker 0 gets the newest state of its own
// run, and never that of another one.
#include "artel/run/folder/newest_run.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/run/folder/identity.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/train/workers.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

class NewestRun : public ::testing::Test {
 protected:
  RunFolder folder(int rank) const { return RunFolder(machines_ / std::to_string(rank) / "a"); }
  // A run with one checkpoint.
  void add(int rank, const std::string& identity, int step, int seed = 1) {
    const fs::path path = folder(rank).checkpoints() / fmt::format("step-{:012}", step);
    fs::create_directories(path);
    write_file_atomically(path / "model.safetensors", fmt::format("{} {}", identity, step));
    write_file_atomically(folder(rank).config(),
                          fmt::format("# step {}\n[train]\nseed = {}\n", step, seed));
    if (!identity.empty()) save_identity(folder(rank), identity);
  }
  // The error of worker 0, if any.
  std::string bring(int workers) {
    std::string what;
    on_workers(workers, [&](int rank, Cluster& cluster) {
      try {
        cluster.attempt([&] { bring_newest_run(*cluster.group(), folder(rank), true); });
      } catch (const Error& error) {
        if (rank == 0) what = error.what();
      }
    });
    return what;
  }
  bool has_step(int rank, int step) const {
    return fs::exists(folder(rank).checkpoints() / fmt::format("step-{:012}", step));
  }

  TemporaryFolder temporary_;
  fs::path machines_ = temporary_.path();
};

TEST_F(NewestRun, BringsTheSameRunAndMovesReplacedFilesAside) {
  add(0, "x", 60);
  add(1, "x", 200);
  EXPECT_EQ(bring(2), "");
  EXPECT_TRUE(has_step(0, 60));
  EXPECT_TRUE(has_step(0, 200));
  EXPECT_EQ(identity_of(folder(0)), "x");
  EXPECT_EQ(read_file(folder(0).config()).substr(0, 10), "# step 200");
  EXPECT_EQ(read_file(folder(0).path().string() + ".replaced/config.toml").substr(0, 9),
            "# step 60");
}

TEST_F(NewestRun, IgnoresAnotherRunOfTheSameName) {
  add(0, "x", 60);
  add(1, "y", 200);
  add(2, "x", 80);
  const std::string before = read_file(folder(0).config());
  EXPECT_EQ(bring(2), "");
  EXPECT_EQ(read_file(folder(0).config()), before);
  EXPECT_FALSE(has_step(0, 200));
  EXPECT_EQ(bring(3), "");
  EXPECT_TRUE(has_step(0, 80));
  EXPECT_FALSE(has_step(0, 200));
}

TEST_F(NewestRun, AMachineWithoutARunGetsTheOnlyOne) {
  add(1, "x", 60);
  add(2, "x", 80);
  EXPECT_EQ(bring(3), "");
  EXPECT_TRUE(has_step(0, 80));
}

TEST_F(NewestRun, DifferentRunsForAMachineWithoutOneAreAnError) {
  add(1, "x", 60);
  add(2, "y", 80);
  const std::string what = bring(3);
  EXPECT_NE(what.find("different runs, and worker 0 has none"), std::string::npos) << what;
  EXPECT_NE(what.find("(step 60)"), std::string::npos) << what;
  EXPECT_NE(what.find("of worker 2 (step 80)"), std::string::npos) << what;
  EXPECT_FALSE(folder(0).used());
}

TEST_F(NewestRun, FoldersWithoutAnIdentityAreComparedBySettings) {
  add(0, "", 60);
  add(1, "", 200, /*seed=*/2);
  add(2, "", 80);
  EXPECT_EQ(bring(3), "");
  EXPECT_TRUE(has_step(0, 80));
  EXPECT_FALSE(has_step(0, 200));
}

TEST_F(NewestRun, AnotherRunMakesRoom) {
  add(0, "x", 60);
  make_room(folder(0), "x");
  EXPECT_TRUE(folder(0).used());
  const FileLock lock(folder(0).lock());
  EXPECT_THROW(make_room(folder(0), "y"), Error);
  EXPECT_TRUE(folder(0).used());
}

TEST_F(NewestRun, AnotherRunIsMovedAside) {
  add(0, "x", 60);
  make_room(folder(0), "y");
  EXPECT_FALSE(folder(0).used());
  EXPECT_TRUE(fs::exists(folder(0).path().string() + ".replaced/config.toml"));
}

}  // namespace
}  // namespace artel
