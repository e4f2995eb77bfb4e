// Displays a TraceSummary in a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/observe/table.h"
#include "artel/observe/trace_summary.h"
#include "artel/observe/wrapped_text.h"

namespace artel::observe {
namespace {

constexpr size_t kShownOps = 10;
constexpr double kGain = 1.005;  // smaller speedups are not reported

std::string share_text(double share) { return fmt::format("{:.1f} %", 100 * share); }

std::string time_text(double seconds) {
  if (seconds < 1e-3) return fmt::format("{:.0f} us", 1e6 * seconds);
  if (seconds < 1) return fmt::format("{:.3g} ms", 1e3 * seconds);
  return fmt::format("{:.3g} s", seconds);
}

// The parts of a step, largest first.
std::string shares_sentence(const TraceSummary& summary) {
  constexpr const char* kWords[] = {"computing", "waiting for data", "waiting for workers",
                                    "the wire",  "the update",       "the rest"};
  std::vector<std::pair<double, std::string>> shares;
  for (size_t i = 0; i < summary.parts.size(); ++i)
    if (summary.parts[i] >= 0.0005)
      shares.emplace_back(summary.parts[i],
                          fmt::format("{} {}", kWords[i], share_text(summary.parts[i])));
  std::ranges::stable_sort(shares, std::greater(), &std::pair<double, std::string>::first);
  std::vector<std::string> words;
  for (const auto& [share, text] : shares) words.push_back(text);
  return fmt::format("A step takes {} ({} from step {} on, {}): {}.",
                     time_text(summary.step_seconds), counted(summary.steps, "step"),
                     format_count(summary.first_step),
                     counted(std::ssize(summary.workers), "worker"), join(words, ", "));
}

// The critical path over workers.
std::string path_sentence(const TraceSummary& summary) {
  const auto most = std::ranges::max_element(summary.workers, {}, &TraceSummary::Worker::awaited);
  if (summary.workers.size() == 1) return "";
  if (most->awaited == 0) return " No worker kept the others waiting.";
  return fmt::format(" In {} of {}, the others waited for {}, on average {} per step.",
                     format_count(most->awaited), counted(summary.steps, "step"), most->name,
                     time_text(summary.waited_seconds));
}

std::string gains_sentence(const TraceSummary& summary) {
  std::vector<std::string> gains;
  const auto add = [&](double times, const char* what) {
    if (times >= kGain) gains.push_back(fmt::format("{:.2f}x without {}", times, what));
  };
  add(summary.without_waiting, "waiting for workers");
  add(summary.without_wire, "the wire");
  if (gains.size() == 2) add(summary.without_both, "both");
  add(summary.without_data, "waiting for data");
  if (gains.empty()) return " It would not be faster without waiting or without the wire.";
  return fmt::format(" It would be faster: {}.", join(gains, ", "));
}

std::string workers_table(const TraceSummary& summary) {
  Table table(
      {"who", "step", "computing", "data", "workers", "wire", "update", "rest", "others waited"});
  for (const TraceSummary::Worker& worker : summary.workers) {
    std::vector<std::string> cells = {worker.name, time_text(worker.step_seconds)};
    for (const double share : worker.parts) cells.push_back(share_text(share));
    cells.push_back(fmt::format("{} of {}", worker.awaited, summary.steps));
    table.add(cells);
  }
  return table.text();
}

std::string ops_table(const TraceSummary& summary) {
  Table table({"op", "of computing", "of a core"});
  double rest = 0, rest_share = 0;
  for (size_t i = 0; i < summary.ops.size(); ++i) {
    const TraceSummary::Op& op = summary.ops[i];
    if (i < kShownOps) {
      table.add({op.name, share_text(op.share), time_text(op.seconds)});
    } else {
      rest += op.seconds;
      rest_share += op.share;
    }
  }
  if (rest > 0)
    table.add({fmt::format("{} others", summary.ops.size() - kShownOps), share_text(rest_share),
               time_text(rest)});
  return table.text();
}

}  // namespace

std::string to_text(const TraceSummary& summary, int width) {
  std::string text =
      wrapped(shares_sentence(summary) + path_sentence(summary) + gains_sentence(summary), width);
  text += '\n' + workers_table(summary);
  if (!summary.ops.empty()) text += '\n' + ops_table(summary);
  if (summary.workers.size() > 1)
    text += fmt::format("\nclocks agree to within {}\n", time_text(summary.clock_error));
  return text;
}

}  // namespace artel::observe
