#include "artel/dashboard/api.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::dashboard {
namespace {

constexpr std::string_view kFiles[] = {"live.json",     "workers.jsonl", "metrics.jsonl",
                                       "texts.jsonl",   "summary.json",  "trace_summary.json",
                                       "mistakes.json", "config.toml",   "failure.txt"};

}  // namespace

// The first line is what a page asks for (the name of a run, a key), the second names a file of the
// run's folder, and the rest is in it.
void read(const Bytes& bytes) {
  namespace board = artel::dashboard;
  static const TemporaryFolder folder;
  const auto path = folder / "fuzz";
  const std::string_view text = bytes.text();
  const size_t first = std::min(text.find('\n'), text.size());
  const size_t second = std::min(text.find('\n', first + 1), text.size());
  const std::string asked(text.substr(0, first));
  if (first == text.size()) return;
  const std::string_view name = text.substr(first + 1, second - first - 1);
  std::filesystem::remove_all(path);
  std::filesystem::create_directories(path);
  write_input(path / "config.toml", "[data]\nset = \"mnist\"\n");
  for (const std::string_view file : kFiles)
    if (name == file && second < text.size()) write_input(path / file, text.substr(second + 1));
  board::Catalogue catalogue(folder.path());
  board::runs_json(catalogue);
  board::prometheus_text(catalogue);
  board::values_json(catalogue, asked);
  with_name(bytes, [&] {
    for (const std::string& run : {std::string("fuzz"), asked}) {
      board::run_json(catalogue, run);
      board::live_json(catalogue, run);
      board::history_json(catalogue, run);
      board::trace_json(catalogue, run);
      board::series_json(catalogue, run, {.points = 20});
      board::differences_json(catalogue, {run, "fuzz"});
    }
  });
}

std::vector<std::string> seeds() {
  return {
      "fuzz\nmetrics.jsonl\n{\"step\":1,\"seconds\":0.5,\"train/loss\":1.5}\n"
      "{\"step\":2,\"seconds\":1,\"event\":\"slow\",\"text\":\"worker 1\"}\n",
      "fuzz\nworkers.jsonl\n{\"at\":1.5,\"step\":3,\"workers\":{\"worker 0\":[0.5,0.1,0.4,0.2]}}\n",
      "fuzz\ntrace_summary.json\n{\"steps\":2,\"times_faster\":{},\"timeline\":{\"step\":1,"
      "\"seconds\":0.5,\"workers\":[]}}",
      "fuzz\nsummary.json\n{\"step\":5,\"seconds\":2,\"stopped_by\":\"epochs\"}",
      "fuzz\nmistakes.json\n{\"step\":2,\"mistakes\":[]}",
      "fuzz\nlive.json\n{\"at\":1,\"workers\":[],\"events\":[]}"};
}

}  // namespace artel::fuzz::dashboard
