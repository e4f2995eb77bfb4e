#include "artel/observe/trace.h"

#include "artel/base/file.h"
#include "artel/observe/trace_summary.h"
#include "tests/fuzz/target.h"
#include "tests/support/temporary_folder.h"

namespace artel::fuzz::trace {

// A trace of ours or of another program, and what it says.
void read(const Bytes& bytes) {
  static const TemporaryFolder folder;
  const auto file = folder / "fuzz.json";
  write_input(file, bytes.text());
  observe::Trace trace;
  trace.load(file);
  if (const auto summary = observe::summarize(trace)) {
    to_json(*summary);
    to_text(*summary);
  }
  trace.json();
}

std::vector<std::string> seeds() {
  observe::Trace trace;
  trace.name_process(1, "worker 1");
  for (const int worker : {0, 1}) {
    trace.add(
        {.name = "step 7", .category = "step", .process = worker, .begin = 1, .duration = 0.5});
    trace.add({.name = "conv forward",
               .category = "compute",
               .process = worker,
               .thread = 2,
               .begin = 1.1,
               .duration = 0.2});
    trace.add({.name = "bucket 0",
               .category = "wire",
               .process = worker,
               .thread = 1,
               .begin = 1.3 + 0.1 * worker,
               .duration = 0.1});
    trace.add(
        {.name = "sums", .category = "wait", .process = worker, .begin = 1.3, .duration = 0.2});
  }
  return {trace.json()};
}

}  // namespace artel::fuzz::trace
