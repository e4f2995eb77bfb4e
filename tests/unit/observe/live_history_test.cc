#include "artel/observe/live_history.h"

#include <gtest/gtest.h>

#include "artel/base/file.h"
#include "artel/base/json_values.h"
#include "artel/base/text.h"
#include "tests/support/temporary_folder.h"

namespace artel::observe {
namespace {

LiveRun run_at(double at) {
  LiveWorker worker;
  worker.name = "worker 0";
  worker.computing = 0.123456789;
  worker.workers = 0.5;
  worker.wire_wait = 0.2;
  worker.samples_per_second = 1234.56;
  LiveRun run;
  run.at = at;
  run.step = static_cast<int64_t>(at);
  run.workers = {worker};
  return run;
}

// As its thread does, once a second from `from` on.
void live(LiveHistory& history, int from, int to) {
  for (int at = from; at < to; ++at)
    if (history.due(at)) history.add(run_at(at));
}

std::vector<double> moments(const std::filesystem::path& path) {
  std::vector<double> all;
  for (const std::string& line : split(read_file(path), '\n'))
    if (!line.empty()) all.push_back(nlohmann::json::parse(line)["at"]);
  return all;
}

TEST(LiveHistory, ALineEveryTenSeconds) {
  const TemporaryFolder folder;
  LiveHistory history(folder / "workers.jsonl");
  live(history, 0, 25);
  EXPECT_EQ(moments(folder / "workers.jsonl"), (std::vector<double>{0, 10, 20}));
  const std::string text = read_file(folder / "workers.jsonl");
  EXPECT_EQ(text.substr(0, text.find('\n')),
            R"({"at":0.0,"step":0,"workers":{"worker 0":[0.1235,0.0,0.5,0.0,1234.56,0.2]}})");
}

TEST(LiveHistory, ALongRunIsThinnedOutEvenly) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "workers.jsonl";
  LiveHistory history(path, 20);
  live(history, 0, 5000);
  const std::vector<double> all = moments(path);
  EXPECT_LT(all.size(), 20u);
  EXPECT_GE(all.size(), 10u);
  EXPECT_EQ(all.front(), 0);
  for (size_t i = 1; i < all.size(); ++i) EXPECT_EQ(all[i] - all[i - 1], 320);
}

// Even if it was stopped for a while.
TEST(LiveHistory, AResumedRunGoesOnAsOften) {
  const TemporaryFolder folder;
  const std::filesystem::path path = folder / "workers.jsonl";
  {
    LiveHistory history(path, 20);
    live(history, 0, 1000);
  }
  const std::vector<double> before = moments(path);
  ASSERT_EQ(before.at(2) - before.at(1), 80);
  LiveHistory again(path, 20);
  live(again, 100'000, 100'081);
  std::vector<double> after = before;
  after.insert(after.end(), {100'000, 100'080});
  EXPECT_EQ(moments(path), after);
}

TEST(LiveHistory, WorkersThatSayNothingHaveNoLine) {
  const TemporaryFolder folder;
  LiveHistory history(folder / "workers.jsonl");
  LiveRun run = run_at(0);
  run.workers.front().computing.reset();
  history.add(run);
  EXPECT_EQ(read_file(folder / "workers.jsonl"), "");
}

}  // namespace
}  // namespace artel::observe
