#include "artel/run/folder/run_folder.h"

#include "artel/observe/live_history.h"
#include "artel/observe/metrics.h"
#include "artel/observe/metrics_tail.h"
#include "artel/run/folder/overview.h"
#include "artel/run/report/export.h"
#include "artel/run/report/live_view.h"
#include "artel/run/report/trace_request.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::run_folder {
namespace {

constexpr std::string_view kFiles[] = {
    "samples.json",  "workers.json",  "live.json",   "workers.jsonl", "metrics.jsonl",
    "trace.request", "trace.answer",  "texts.jsonl", "summary.json",  "failure.txt",
    "lock",          "mistakes.json", "config.toml", "table.json",    "trace_summary.json"};

// All that asks a folder anything; each may refuse.
void ask(const std::filesystem::path& path) {
  const RunFolder folder(path);
  const std::function<void()> questions[] = {
      [&] { folder.load_layout(); },
      [&] { folder.fingerprint(); },
      [&] { folder.load_workers(); },
      [&] { to_json(live_view(path), path); },
      [&] { overview(path); },
      [&] { observe::read_metrics(path); },
      [&] { observe::MetricsTail(path).read(); },
      [&] { observe::LiveHistory(folder.workers_history()); },
      [&] { read_trace_request(folder); },
      [&] { read_trace_answer(folder); },
      [&] { export_json(path); },
      [&] { export_html(path); },
  };
  for (const auto& question : questions) {
    try {
      question();
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::internal) throw;
    }
  }
}

}  // namespace

// The first line names a file of a run's folder; the rest is in it.
void read(const Bytes& bytes) {
  static const TemporaryFolder folder;
  const auto path = folder / "fuzz";
  const std::string_view text = bytes.text(), name = text.substr(0, text.find('\n'));
  for (const std::string_view file : kFiles) {
    if (name != file) continue;
    std::filesystem::remove_all(path);
    std::filesystem::create_directories(path);
    write_input(path / "config.toml", "[data]\nset = \"mnist\"\n");
    if (name.size() < text.size()) write_input(path / file, text.substr(name.size() + 1));
    ask(path);
  }
}

std::vector<std::string> seeds() {
  return {
      R"(samples.json
{"version":1,"input":[1,28,28],"type":"f32","classes":2,"class_names":["a","b"],"fingerprint":"x","parts":[{"name":"x","shape":[3]}]})",
      R"(workers.json
{"transport":"shm","token":"t","workers":[{"worker":0,"host":"n01","process":7,"door":"@a"}]})",
      R"(live.json
{"at":1.5,"host":"n01","process":7,"step":3,"steps":9,"epoch":1,"epochs":2,"loss":0.5,"seconds":1,"samples_per_second":5,"seconds_left":1,"strategy":"ring","workers":[{"name":"worker 0","host":"n01","process":7,"server":false,"cores":2,"silent_seconds":0,"doing":"step 4","step":3,"lanes":4,"mesh":"","stage":-1,"computing":0.5,"memory_bytes":1000}],"events":[{"at":1,"step":2,"kind":"loss","text":"still"}]})",
      "workers.jsonl\n{\"at\":1.5,\"step\":3,\"workers\":{\"worker 0\":[0.5,0.1,0.4,0.2,100]}}\n",
      "metrics.jsonl\n{\"step\":1,\"seconds\":0.5,\"train/loss\":1.5e0,\"test/loss\":null}\n"
      "{\"step\":1,\"seconds\":1,\"event\":\"slow\",\"text\":\"worker 1\"}\n",
      "trace.request\n{\"id\":\"a\",\"steps\":20}",
      "trace.answer\n{\"id\":\"a\",\"state\":\"refused\",\"text\":\"no\"}",
      "texts.jsonl\n{\"step\":2,\"epoch\":1,\"prompt\":\"a\",\"text\":\"b\"}\n",
      "summary.json\n{\"step\":5,\"seconds\":2,\"stopped_by\":\"epochs\",\"test\":{\"loss\":0.5}}",
      "failure.txt\n[step 2] the loss is nan",
      "lock\nhost n01, process 7",
      R"(mistakes.json
{"step":2,"part":"test","columns":1,"tile_width":8,"tile_height":8,"mistakes":[{"sample":1,"label":"a","answer":"b","probability":0.5}]})",
      "config.toml\n[train]\nepochs = 3\n"};
}

}  // namespace artel::fuzz::run_folder
