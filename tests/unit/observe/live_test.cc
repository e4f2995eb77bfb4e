#include "artel/observe/live.h"

#include <gtest/gtest.h>

#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel::observe {
namespace {

using Kind = Diagnosis::Kind;

LiveWorker worker(int number, double computing, double data, double workers) {
  return {.name = "worker " + std::to_string(number),
          .host = "n0" + std::to_string(number),
          .process = 100 + number,
          .cores = 2,
          .doing = "step 12",
          .step = 11,
          .lanes = 4,
          .samples_per_second = 1000,
          .computing = computing,
          .data = data,
          .workers = workers,
          .wire = 0.3,
          .seconds_per_lane = 0.01,
          .sent_per_second = 1 << 20,
          .processor = 1.9,
          .memory_bytes = 300 << 20};
}

LiveRun run_of(std::vector<LiveWorker> workers) {
  return {.at = 1000, .step = 11, .steps = 100, .workers = std::move(workers)};
}

TEST(Live, AllIsWell) {
  const Diagnosis found = diagnose(run_of({worker(0, 0.95, 0, 0.05), worker(1, 0.9, 0, 0.1)}));
  EXPECT_EQ(found.kind, Kind::fine);
  EXPECT_EQ(found.text, "all is well: every worker computes at least 90 % of its time");
  EXPECT_EQ(found.culprit, "");
}

TEST(Live, TheMeshIsAColumn) {
  LiveRun run = run_of({worker(0, 0.95, 0, 0.05), worker(1, 0.9, 0, 0.1)});
  EXPECT_EQ(live_text(run, "run", "running", {.width = 200}).find("mesh"), std::string::npos);
  run.workers[1].mesh = "data 0, stage 1";
  run.workers[1].stage = 1;
  EXPECT_NE(live_text(run, "run", "running", {.width = 200}).find("data 0, stage 1"),
            std::string::npos);
  const LiveRun again = live_from_json(to_json(run), "test");
  EXPECT_EQ(again.workers[1].mesh, "data 0, stage 1");
  EXPECT_EQ(again.workers[1].stage, 1);
}

TEST(Live, NothingIsKnownYet) {
  EXPECT_EQ(diagnose(run_of({{.name = "worker 0"}})).kind, Kind::unknown);
  EXPECT_EQ(diagnose({}).kind, Kind::unknown);
}

TEST(Live, AWorkerThatIsSlowerThanTheOthers) {
  LiveRun run = run_of({worker(0, 0.6, 0, 0.4), worker(1, 0.99, 0, 0.01), worker(2, 0.6, 0, 0.4)});
  run.workers[1].seconds_per_lane = 0.018;
  EXPECT_EQ(diagnose(run).text,
            "worker 1 on n01 is 1.8x slower than the others: they wait for it 40 % of their time");
  run.workers[1].lanes = 2;
  const Diagnosis found = diagnose(run);
  EXPECT_EQ(found.kind, Kind::slow);
  EXPECT_EQ(found.culprit, "worker 1");
  EXPECT_EQ(
      found.text,
      "worker 1 on n01 is 1.8x slower than the others: it has been given fewer lanes (2 of 10)");
}

// A larger stage takes longer and is not slow. A worker is compared with those of its stage.
TEST(Live, StagesAreNotComparedWithEachOther) {
  LiveRun run = run_of({worker(0, 0.3, 0, 0.7), worker(1, 0.9, 0, 0.1), worker(2, 0.3, 0, 0.7),
                        worker(3, 0.9, 0, 0.1)});
  for (int i = 0; i < 4; ++i) run.workers[i].stage = i % 2;
  run.workers[1].seconds_per_lane = run.workers[3].seconds_per_lane = 0.03;
  EXPECT_NE(diagnose(run).kind, Kind::slow);
  EXPECT_EQ(diagnose(run).culprit.find("worker 1"), std::string::npos);
  run.workers[3].seconds_per_lane = 0.06;
  run.workers[1].workers = 0.5;
  EXPECT_EQ(diagnose(run).text,
            "worker 3 on n03 is 2.0x slower than the others of stage 1: they wait for it 40 % of "
            "their time");
  run.workers.resize(2);
  EXPECT_NE(diagnose(run).kind, Kind::slow);
}

TEST(Live, TheWireLimits) {
  LiveRun run = run_of({worker(0, 0.6, 0, 0.4), worker(1, 0.64, 0, 0.36)});
  EXPECT_EQ(diagnose(run).text,
            "the wire limits: workers wait for sums 38 % of their time; try cluster.compress, "
            "cluster.local_steps or a larger batch");
  run.workers[1].host = "n00";
  EXPECT_TRUE(diagnose(run).text.starts_with("workers wait for sums"));
  run.workers.push_back({.name = "server 0", .server = true});
  EXPECT_NE(diagnose(run).text.find("wait for servers 38 %"), std::string::npos);
  run.workers[0].stage = 0;
  EXPECT_NE(diagnose(run).text.find("other stages"), std::string::npos);
}

TEST(Live, WaitingForData) {
  const Diagnosis found = diagnose(run_of({worker(0, 0.9, 0.1, 0), worker(1, 0.69, 0.31, 0)}));
  EXPECT_EQ(found.kind, Kind::data);
  EXPECT_EQ(found.culprit, "worker 1");
  EXPECT_EQ(found.text,
            "worker 1 waits for data 31 % of its time: raise data.threads, or augment less");
}

TEST(Live, OtherProgramsOnTheMachine) {
  LiveRun run = run_of({worker(0, 0.9, 0, 0.1), worker(1, 0.9, 0, 0.1)});
  run.workers[1].processor = 0.6;
  EXPECT_EQ(diagnose(run).text,
            "worker 1 gets only 0.6 of the 2 cores that it could use: other programs are busy on "
            "n01, or a quota limits it");
}

// The others use little of their processors because they wait; the one they wait for is to blame.
TEST(Live, TheWorkerOnTheCriticalPathIsToBlame) {
  LiveRun run =
      run_of({worker(0, 0.15, 0, 0.85), worker(1, 0.2, 0, 0.8), worker(2, 0.85, 0, 0.15)});
  run.workers[0].processor = 0.1;
  run.workers[1].processor = 0.2;
  run.workers[2].processor = 0.15;
  EXPECT_EQ(diagnose(run).culprit, "worker 2");
  run.workers[2].processor = 1.7;
  run.workers[2].lanes = 12;
  EXPECT_EQ(diagnose(run).text,
            "the others wait for worker 2 on n02 up to 85 % of their time: it has 12 of 20 lanes");
}

TEST(Live, WaitingForTheWireIsWhatEveryWorkerWaits) {
  LiveRun run = run_of({worker(0, 0.2, 0, 0.8), worker(1, 0.7, 0, 0.3)});
  separate_waiting(run.workers);
  EXPECT_EQ(run.workers[0].wire_wait, 0.3);
  EXPECT_EQ(run.workers[1].wire_wait, 0.3);
  EXPECT_EQ(live_from_json(to_json(run), "test").workers[0].wire_wait, 0.3);
  LiveRun alone = run_of({worker(0, 1, 0, 0)});
  separate_waiting(alone.workers);
  EXPECT_FALSE(alone.workers[0].wire_wait);
}

TEST(Live, ASilentWorkerComesBeforeAllElse) {
  LiveRun run = run_of({worker(0, 0.5, 0.5, 0), worker(1, 0.9, 0, 0.1)});
  run.workers[1].silent_seconds = 12;
  const Diagnosis found = diagnose(run);
  EXPECT_EQ(found.kind, Kind::silent);
  EXPECT_NE(found.text.find("worker 1 on n01 has been silent for 12 s, last seen in step 12"),
            std::string::npos);
}

TEST(Live, CoresWithoutLanes) {
  LiveRun run = run_of({worker(0, 1, 0, 0)});
  run.workers[0].cores = 8;
  run.workers[0].processor = 3.9;
  EXPECT_EQ(diagnose(run).kind, Kind::idle);
}

// A worker on a device needs few cores.
TEST(Live, WorkersOnADeviceAreNeitherCrowdedNorIdle) {
  LiveRun run = run_of({worker(0, 1, 0, 0)});
  run.workers[0].cores = 8;
  run.workers[0].processor = 0.3;
  run.workers[0].device_memory_bytes = 1 << 20;
  EXPECT_EQ(diagnose(run).kind, Kind::fine);
}

TEST(Live, TextShowsDevices) {
  LiveRun run = run_of({worker(0, 1, 0, 0)});
  const LiveText wide = {.width = 300};
  EXPECT_EQ(live_text(run, "run", "running", wide).find("on device"), std::string::npos);
  run.device = "opencl:0 (gpu)";
  run.workers[0].device = 0.75;
  run.workers[0].device_memory_bytes = 3 << 20;
  run.workers[0].device_copied_per_second = 2 << 20;
  const std::string text = live_text(run, "run", "running", wide);
  for (const char* part : {"opencl:0 (gpu)", "on device", "75 %", "3 MiB", "2 MiB/s"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in " << text;
}

TEST(Live, JsonHasAllOfIt) {
  LiveRun run = run_of({worker(0, 0.9, 0.02, 0.08), {.name = "server 0", .server = true}});
  run.loss = 0.25;
  run.workers[1].staleness = 1.5;
  run.device = "opencl:0 (gpu)";
  run.workers[0].device = 0.75;
  run.workers[0].device_memory_bytes = 1 << 20;
  run.workers[0].device_copied_per_second = 1000;
  run.events.push_back({.at = 990, .step = 7, .kind = "slow", .text = "worker \"1\""});
  const LiveRun read = live_from_json(to_json(run), "live.json");
  EXPECT_EQ(to_json(read), to_json(run));
  EXPECT_EQ(read.loss, 0.25);
  EXPECT_EQ(read.workers[0].computing, 0.9);
  EXPECT_EQ(read.device, "opencl:0 (gpu)");
  EXPECT_EQ(read.workers[0].device, 0.75);
  EXPECT_EQ(read.workers[0].device_memory_bytes, 1 << 20);
  EXPECT_EQ(read.workers[0].device_copied_per_second, 1000);
  EXPECT_FALSE(read.workers[1].computing);
  EXPECT_EQ(read.workers[1].staleness, 1.5);
  EXPECT_EQ(read.events[0].text, "worker \"1\"");
}

TEST(Live, OtherTextIsRefused) {
  for (const char* text : {"", "{", "[]", "3", R"({"step": "x"})", R"({"workers": 3})",
                           R"({"workers": [], "events": [3]})", R"({"workers": [{"step": []}]})"})
    EXPECT_THROW(live_from_json(text, "live.json"), Error) << text;
}

TEST(Live, TheCulpritIsOnTop) {
  LiveRun run = run_of({worker(0, 0.6, 0, 0.4), worker(1, 0.99, 0, 0.01)});
  run.workers[1].seconds_per_lane = 0.02;
  const std::string text = live_text(run, "runs/a", "running", {.width = 120});
  const std::vector<std::string> lines = split(text, '\n');
  EXPECT_TRUE(lines[0].starts_with("runs/a  running  step 11 of 100")) << text;
  EXPECT_TRUE(lines[1].starts_with("worker 1 on n01 is 2.0x slower")) << text;
  EXPECT_TRUE(lines[5].starts_with("worker 1")) << text;
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(live_text(run, "runs/a", "running", {.width = 120, .colour = true}).find('\x1b'),
            std::string::npos);
}

TEST(Live, ForecastAndActualTimesOfAStep) {
  LiveRun run = run_of({worker(0, 0.9, 0, 0.1)});
  run.seconds_per_step = 0.03;
  const auto text = [&] {
    return live_text(live_from_json(to_json(run), "live.json"), "a", "running", {.width = 200});
  };
  EXPECT_EQ(text().find("forecast"), std::string::npos);
  run.forecast_seconds = 0.028;
  EXPECT_NE(text().find("30.0 ms a step (forecast 28.0 ms)"), std::string::npos) << text();
}

TEST(Live, NarrowTerminalsShowLess) {
  LiveRun run = run_of({worker(0, 0.9, 0, 0.1), worker(1, 0.9, 0, 0.1)});
  run.events.push_back({.at = 990, .step = 7, .kind = "worker", .text = "worker 2 ended"});
  for (const int width : {20, 40, 60, 80, 200})
    for (const std::string& line :
         split(live_text(run, "runs/a", "running", {.width = width}), '\n'))
      EXPECT_LE(std::ssize(line), width) << line;
  EXPECT_NE(live_text(run, "r", "running", {.width = 200}).find("n01"), std::string::npos);
  EXPECT_EQ(live_text(run, "r", "running", {.width = 60}).find("n01"), std::string::npos);
}

}  // namespace
}  // namespace artel::observe
