#include "artel/observe/trace_summary.h"

#include <algorithm>

#include "artel/base/json_values.h"

namespace artel::observe {
namespace {

using Json = nlohmann::ordered_json;

// Names of the parts, as in live.json.
constexpr const char* kNames[] = {"computing",   "waiting_for_data", "waiting_for_workers",
                                  "on_the_wire", "updating",         "other"};
static_assert(std::size(kNames) == kStepParts);

// A smaller share of a step does not count as waiting for a worker.
constexpr double kWaiting = 0.01;
// Shorter pieces of the shown step are merged with the preceding one.
constexpr double kVisible = 0.005;
constexpr double kTiny = 1e-12;  // seconds; avoids division by zero for empty steps

// Seconds of one worker in one step, by part.
TraceSummary::Parts seconds_of(const WorkerStep& step) {
  TraceSummary::Parts seconds = {};
  for (const StepPiece& piece : step.pieces)
    seconds[static_cast<size_t>(piece.part)] += piece.seconds;
  return seconds;
}

double of(const TraceSummary::Parts& parts, StepPart part) {
  return parts[static_cast<size_t>(part)];
}

// Actual and hypothetical times of steps.
struct Lengths {
  double all = 0, without_waiting = 0, without_wire = 0, without_both = 0, without_data = 0;
};

// The actual step and hypothetical ones. Without waiting, a step shrinks by the mean waiting time
// of the workers. Without data, it shrinks by the reduction of the longest working time.
void add_step(const std::vector<TraceSummary::Parts>& workers, double seconds, Lengths& lengths) {
  const auto count = static_cast<double>(workers.size());
  double waiting = 0, wire = 0, longest = 0, longest_without_data = 0;
  for (const TraceSummary::Parts& parts : workers) {
    waiting += of(parts, StepPart::workers) / count;
    wire += of(parts, StepPart::wire) / count;
    const double data = of(parts, StepPart::data), works = of(parts, StepPart::computing) +
                                                           of(parts, StepPart::updating) +
                                                           of(parts, StepPart::other);
    longest = std::max(longest, works + data);
    longest_without_data = std::max(longest_without_data, works);
  }
  lengths.all += seconds;
  lengths.without_waiting += seconds - waiting;
  lengths.without_wire += seconds - wire;
  lengths.without_both += seconds - waiting - wire;
  lengths.without_data += seconds - (longest - longest_without_data);
}

// The worker on the critical path of a step.
void find_last(const std::vector<TraceSummary::Parts>& workers, double seconds,
               TraceSummary& summary) {
  const auto waits = [](const TraceSummary::Parts& parts) { return of(parts, StepPart::workers); };
  const auto last = std::ranges::min_element(workers, {}, waits);
  double others = 0;
  for (const TraceSummary::Parts& parts : workers) others += waits(parts) - waits(*last);
  others /= std::max(1.0, static_cast<double>(workers.size()) - 1);
  if (others <= kWaiting * seconds) return;
  ++summary.workers[static_cast<size_t>(last - workers.begin())].awaited;
  summary.waited_seconds += others;
}

// Converts sums over steps to means, and seconds of parts to shares.
void average(TraceSummary& summary) {
  const auto steps = static_cast<double>(summary.steps);
  double all = 0;
  int64_t awaited = 0;
  for (TraceSummary::Worker& worker : summary.workers) {
    all += worker.step_seconds;
    awaited += worker.awaited;
    for (size_t i = 0; i < worker.parts.size(); ++i) {
      summary.parts[i] += worker.parts[i];
      worker.parts[i] /= std::max(worker.step_seconds, kTiny);
    }
    worker.step_seconds /= steps;
  }
  for (double& part : summary.parts) part /= std::max(all, kTiny);
  summary.step_seconds = all / steps / static_cast<double>(summary.workers.size());
  if (awaited > 0) summary.waited_seconds /= static_cast<double>(awaited);
}

void add_ops(const TracedSteps& steps, TraceSummary& summary) {
  std::map<std::string, double> ops;
  double all = 0;
  for (const auto& [number, workers] : steps)
    for (const auto& [process, step] : workers)
      for (const auto& [op, seconds] : step.ops) {
        ops[op] += seconds;
        all += seconds;
      }
  for (const auto& [op, seconds] : ops)
    summary.ops.push_back(
        {op, seconds / std::max(all, kTiny), seconds / static_cast<double>(summary.steps)});
  std::ranges::stable_sort(summary.ops, std::greater(), &TraceSummary::Op::seconds);
}

void add_gains(const Lengths& lengths, TraceSummary& summary) {
  const auto faster = [&](double without) { return lengths.all / std::max(without, kTiny); };
  summary.without_waiting = faster(lengths.without_waiting);
  summary.without_wire = faster(lengths.without_wire);
  summary.without_both = faster(lengths.without_both);
  summary.without_data = faster(lengths.without_data);
}

std::vector<StepPiece> visible(const WorkerStep& step, double begin, double length) {
  std::vector<StepPiece> pieces;
  for (const StepPiece& piece : step.pieces) {
    if (!pieces.empty() && (pieces.back().part == piece.part || piece.seconds < kVisible * length))
      pieces.back().seconds = piece.begin + piece.seconds - begin - pieces.back().begin;
    else
      pieces.push_back({piece.part, piece.begin - begin, piece.seconds});
  }
  return pieces;
}

void show_step(const Trace& trace, const TracedSteps& steps, TraceSummary& summary) {
  std::vector<std::pair<double, int64_t>> lengths;
  for (const auto& [number, workers] : steps)
    lengths.emplace_back(workers.begin()->second.seconds, number);
  const auto middle = lengths.begin() + std::ssize(lengths) / 2;
  std::ranges::nth_element(lengths, middle);
  summary.shown_step = middle->second;
  const auto& workers = steps.at(summary.shown_step);
  double begin = workers.begin()->second.begin, end = begin;
  for (const auto& [process, step] : workers) {
    begin = std::min(begin, step.begin);
    end = std::max(end, step.begin + step.seconds);
  }
  summary.shown_seconds = end - begin;
  for (const auto& [process, step] : workers)
    summary.shown.emplace_back(trace.process_name(process), visible(step, begin, end - begin));
}

Json to_json(const TraceSummary::Parts& parts) {
  Json json;
  for (size_t i = 0; i < parts.size(); ++i) json[kNames[i]] = parts[i];
  return json;
}

}  // namespace

std::optional<TraceSummary> summarize(const Trace& trace) {
  const TracedSteps steps = traced_steps(trace);
  if (steps.empty()) return {};
  TraceSummary summary = {.first_step = steps.begin()->first,
                          .steps = std::ssize(steps),
                          .clock_error = trace.clock_error()};
  for (const auto& [process, step] : steps.begin()->second)
    summary.workers.push_back({.name = trace.process_name(process)});
  Lengths lengths;
  for (const auto& [number, workers] : steps) {
    std::vector<TraceSummary::Parts> parts;
    double seconds = 0;
    for (const auto& [process, step] : workers) {
      TraceSummary::Worker& worker = summary.workers[parts.size()];
      parts.push_back(seconds_of(step));
      worker.step_seconds += step.seconds;
      for (size_t i = 0; i < parts.back().size(); ++i) worker.parts[i] += parts.back()[i];
      seconds += step.seconds / static_cast<double>(workers.size());
    }
    add_step(parts, seconds, lengths);
    find_last(parts, seconds, summary);
  }
  average(summary);
  add_ops(steps, summary);
  add_gains(lengths, summary);
  show_step(trace, steps, summary);
  return summary;
}

std::string to_json(const TraceSummary& summary) {
  Json workers = Json::array(), ops = Json::array(), shown = Json::array();
  for (const auto& worker : summary.workers)
    workers.push_back({{"name", worker.name},
                       {"step_seconds", worker.step_seconds},
                       {"shares", to_json(worker.parts)},
                       {"awaited_steps", worker.awaited}});
  for (const auto& op : summary.ops)
    ops.push_back({{"op", op.name}, {"share", op.share}, {"core_seconds", op.seconds}});
  for (const auto& [worker, pieces] : summary.shown) {
    Json list = Json::array();
    for (const StepPiece& piece : pieces)
      list.push_back({kNames[static_cast<size_t>(piece.part)], piece.begin, piece.seconds});
    shown.push_back({{"name", worker}, {"pieces", list}});
  }
  return Json{
      {"first_step", summary.first_step},
      {"steps", summary.steps},
      {"step_seconds", summary.step_seconds},
      {"clock_error_seconds", summary.clock_error},
      {"shares", to_json(summary.parts)},
      {"workers", workers},
      {"waited_seconds", summary.waited_seconds},
      {"ops", ops},
      {"times_faster",
       {{"without_waiting_for_workers", summary.without_waiting},
        {"without_the_wire", summary.without_wire},
        {"without_both", summary.without_both},
        {"without_waiting_for_data", summary.without_data}}},
      {"timeline",
       {{"step", summary.shown_step}, {"seconds", summary.shown_seconds}, {"workers", shown}}}}
      .dump();
}

}  // namespace artel::observe
