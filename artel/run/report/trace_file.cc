#include "artel/run/report/trace_file.h"

#include <fmt/format.h>

#include "artel/base/file.h"

namespace artel {
namespace {

std::string thread_name(int thread) {
  if (thread == Timeline::kMain) return "steps";
  if (thread == Timeline::kWire) return "wire";
  return fmt::format("lane {}", thread - Timeline::kFirstLane);
}

static_assert(Timeline::kMain == observe::TraceThread::kMain &&
              Timeline::kWire == observe::TraceThread::kWire &&
              Timeline::kFirstLane == observe::TraceThread::kFirstLane);

}  // namespace

std::vector<std::string> worker_names(const Membership& membership) {
  std::vector<std::string> names;
  for (int rank = 0; rank < membership.size(); ++rank)
    names.push_back(rank < std::ssize(membership.members)
                        ? name_of(membership.members[static_cast<size_t>(rank)])
                        : fmt::format("worker {}", rank));
  return names;
}

std::optional<observe::TraceSummary> save_trace(const TimelineRecord& timeline,
                                                const std::vector<std::string>& workers,
                                                const std::filesystem::path& path,
                                                const std::filesystem::path& summary) {
  observe::Trace trace;
  trace.set_clock_error(timeline.clock_error);
  for (size_t rank = 0; rank < workers.size(); ++rank)
    trace.name_process(static_cast<int>(rank), workers[rank]);
  for (const TimelineSpan& span : timeline.spans) {
    trace.name_thread(span.worker, span.thread, thread_name(span.thread));
    trace.add({span.name, span.category, span.worker, span.thread, span.begin, span.seconds});
  }
  trace.save(path);
  std::optional<observe::TraceSummary> said = observe::summarize(trace);
  if (said) write_file_atomically(summary, to_json(*said) + '\n');
  return said;
}

}  // namespace artel
