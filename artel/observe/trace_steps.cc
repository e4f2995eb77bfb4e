#include "artel/observe/trace_steps.h"

#include <algorithm>
#include <charconv>
#include <string_view>

#include "artel/observe/intervals.h"

namespace artel::observe {
namespace {

using Events = std::vector<const TraceEvent*>;

double end_of(const TraceEvent& event) { return event.begin + event.duration; }

// The step number of an event; -1 if it is not a step.
int64_t step_number(const TraceEvent& event) {
  constexpr std::string_view kStep = "step ";
  if (event.category != "step" || !event.name.starts_with(kStep)) return -1;
  int64_t number = -1;
  const char* const end = event.name.data() + event.name.size();
  const auto [rest, error] = std::from_chars(event.name.data() + kStep.size(), end, number);
  return error == std::errc() && rest == end ? number : -1;
}

StepPart part_of(const TraceEvent& event) {
  if (event.category == "compute") return StepPart::computing;
  if (event.category == "update") return StepPart::updating;
  if (event.category == "wire") return StepPart::wire;
  if (event.category == "wait") return event.name == "data" ? StepPart::data : StepPart::workers;
  return StepPart::other;
}

// Events of the main thread are nested. Each piece of time belongs to the innermost event.
std::vector<StepPiece> innermost(Events events) {
  std::ranges::stable_sort(events, [](const TraceEvent* a, const TraceEvent* b) {
    return a->begin != b->begin ? a->begin < b->begin : a->duration > b->duration;
  });
  std::vector<StepPiece> pieces;
  Events open;
  double at = 0;
  const auto advance = [&](double to) {
    if (!open.empty() && to > at) pieces.push_back({part_of(*open.back()), at, to - at});
    at = std::max(at, to);
  };
  const auto close_until = [&](double moment) {
    while (!open.empty() && end_of(*open.back()) <= moment) {
      advance(end_of(*open.back()));
      open.pop_back();
    }
  };
  for (const TraceEvent* event : events) {
    close_until(event->begin);
    advance(event->begin);
    at = std::max(at, event->begin);
    open.push_back(event);
  }
  if (!open.empty()) close_until(end_of(*open.front()));
  return pieces;
}

// The events of one worker in one step.
struct Recorded {
  const TraceEvent* step = nullptr;
  Events main, wire, lanes;
};
using RecordedSteps = std::map<int64_t, std::map<int, Recorded>>;

RecordedSteps recorded_steps(const std::vector<TraceEvent>& events) {
  std::map<int, std::map<double, int64_t>> begins;  // steps by begin, for each process
  RecordedSteps steps;
  for (const TraceEvent& event : events)
    if (const int64_t number = step_number(event); number >= 0) {
      begins[event.process][event.begin] = number;
      steps[number][event.process].step = &event;
    }
  std::erase_if(steps, [&](const auto& step) { return step.second.size() < begins.size(); });
  for (const TraceEvent& event : events) {
    const auto of_process = begins.find(event.process);
    if (of_process == begins.end()) continue;
    const auto after = of_process->second.upper_bound(event.begin);
    if (after == of_process->second.begin()) continue;
    const auto step = steps.find(std::prev(after)->second);
    if (step == steps.end()) continue;
    Recorded& recorded = step->second.at(event.process);
    if (event.begin > end_of(*recorded.step)) continue;
    if (event.thread >= TraceThread::kFirstLane) recorded.lanes.push_back(&event);
    if (event.thread == TraceThread::kMain) recorded.main.push_back(&event);
    if (event.category == "wire") recorded.wire.push_back(&event);
  }
  return steps;
}

// The time at which the last participant started each exchange of a step, by name.
using LastBegins = std::map<std::string_view, double>;

LastBegins last_begins(const std::map<int, Recorded>& workers) {
  LastBegins begins;
  for (const auto& [process, worker] : workers)
    for (const TraceEvent* wire : worker.wire) {
      const auto [found, fresh] = begins.try_emplace(wire->name, wire->begin);
      found->second = std::max(found->second, wire->begin);
    }
  return begins;
}

// The intervals in which a worker's exchanges made progress: all participants had started.
Intervals exchanging(const Recorded& own, const LastBegins& begins) {
  Intervals active;
  for (const TraceEvent* wire : own.wire) active.push_back({begins.at(wire->name), end_of(*wire)});
  return united(std::move(active));
}

// The intervals in which all running lanes waited for other workers.
Intervals lanes_waiting(const Events& lanes) {
  Intervals waiting, computing, both;
  for (const TraceEvent* event : lanes)
    (event->category == "wait" ? waiting : computing).push_back({event->begin, end_of(*event)});
  if (waiting.empty()) return {};
  computing = united(std::move(computing));
  for (const Interval& wait : united(std::move(waiting)))
    cut(wait, computing, [&](const Interval& part, bool computes) {
      if (!computes) both.push_back(part);
    });
  return both;
}

WorkerStep worker_step(const Recorded& own, const LastBegins& begins) {
  WorkerStep step = {.begin = own.step->begin, .seconds = own.step->duration};
  const Intervals active = exchanging(own, begins), idle = lanes_waiting(own.lanes);
  for (const StepPiece& piece : innermost(own.main)) {
    const bool waits = piece.part == StepPart::workers || piece.part == StepPart::wire;
    const bool computes = piece.part == StepPart::computing;
    if (!waits && !computes) {
      step.pieces.push_back(piece);
      continue;
    }
    cut({piece.begin, piece.begin + piece.seconds}, waits ? active : idle,
        [&](const Interval& part, bool inside) {
          const StepPart what = waits    ? (inside ? StepPart::wire : StepPart::workers)
                                : inside ? StepPart::workers
                                         : StepPart::computing;
          step.pieces.push_back({what, part.begin, part.end - part.begin});
        });
  }
  for (const TraceEvent* event : own.lanes)
    if (event->category == "compute") step.ops[event->name] += event->duration;
  return step;
}

}  // namespace

TracedSteps traced_steps(const Trace& trace) {
  const std::vector<TraceEvent> events = trace.events();
  TracedSteps steps;
  for (const auto& [number, workers] : recorded_steps(events)) {
    const LastBegins begins = last_begins(workers);
    for (const auto& [process, recorded] : workers)
      steps[number][process] = worker_step(recorded, begins);
  }
  return steps;
}

}  // namespace artel::observe
