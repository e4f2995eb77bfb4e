#include "artel/plan/drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "artel/base/text.h"
#include "artel/observe/table.h"

namespace artel::plan {
namespace {

struct Look {
  char letter;
  std::string_view name, colour;
};

// Light enough for dark letters, and distinguishable by colour-blind readers.
Look look_of(Work work) {
  switch (work) {
    case Work::forward:
      return {'F', "forward", "#9ecae1"};
    case Work::backward:
      return {'B', "backward", "#fdae6b"};
    case Work::input_gradient:
      return {'I', "gradient of the input", "#fdd0a2"};
    case Work::weight_gradient:
      return {'W', "gradient of the weights", "#a1d99b"};
  }
  return {};
}

std::string label_of(const PipelineShape& shape, const Task& task) {
  std::string label = fmt::format("{}{}", look_of(task.work).letter, task.lane);
  const int round = task.stage / shape.workers;
  if (shape.stages > shape.workers) label += static_cast<char>('a' + round % 26);
  return label;
}

double end_of(const Simulation& simulation) {
  double end = 0;
  for (const std::vector<TaskSpan>& worker : simulation.spans)
    if (!worker.empty()) end = std::max(end, worker.back().end);
  return end;
}

// Columns per unit of time, such that the shortest task has room for the longest label if possible.
double columns_per_second(const Schedule& schedule, const Simulation& simulation, int columns) {
  double shortest = end_of(simulation);
  size_t longest = 0;
  for (const std::vector<TaskSpan>& worker : simulation.spans)
    for (const TaskSpan& span : worker) {
      if (span.end > span.begin) shortest = std::min(shortest, span.end - span.begin);
      longest = std::max(longest, label_of(schedule.shape, span.task).size());
    }
  if (shortest <= 0) return 0;
  return std::min(static_cast<double>(longest + 1) / shortest, columns / end_of(simulation));
}

}  // namespace

std::string schedule_table(const Schedule& schedule, const Simulation& simulation) {
  observe::Table table({"worker", "stages", "tasks", "activations kept", "busy %", "idle %"});
  const std::vector<int> kept = most_kept(schedule);
  for (int worker = 0; worker < schedule.shape.workers; ++worker) {
    std::vector<std::string> stages;
    for (int stage = worker; stage < schedule.shape.stages; stage += schedule.shape.workers)
      stages.push_back(std::to_string(stage));
    const double busy =
        simulation.seconds > 0 ? 100 * simulation.busy[worker] / simulation.seconds : 0;
    table.add({std::to_string(worker), join(stages, ", "),
               std::to_string(schedule.tasks[worker].size()), std::to_string(kept[worker]),
               fmt::format("{:.1f}", busy), fmt::format("{:.1f}", 100 - busy)});
  }
  return table.text();
}

std::string schedule_text(const Schedule& schedule, const Simulation& simulation, int columns) {
  const double scale = columns_per_second(schedule, simulation, columns);
  const auto column = [&](double time) { return static_cast<size_t>(std::lround(time * scale)); };
  std::string text;
  for (size_t worker = 0; worker < simulation.spans.size(); ++worker) {
    std::string line;
    for (const TaskSpan& span : simulation.spans[worker]) {
      const size_t begin = column(span.begin), end = column(span.end);
      line.resize(std::max(line.size(), begin), ' ');
      if (end <= begin) continue;
      std::string label = label_of(schedule.shape, span.task);
      if (label.size() >= end - begin) label.resize(std::min<size_t>(1, end - begin));
      label.resize(std::max(label.size(), end - begin - 1), '-');
      line += label;
    }
    text += fmt::format("worker {:<3} {}\n", worker, line);
  }
  return text;
}

std::string schedule_svg(const Schedule& schedule, const Simulation& simulation) {
  constexpr double kLeft = 80, kTop = 44, kRow = 26, kGap = 4, kMostWidth = 1600, kLetter = 7;
  const double end = end_of(simulation);
  const double width = std::min(
      kMostWidth, 2.5 * kLetter * columns_per_second(schedule, simulation, 1 << 20) * end / 2);
  const double scale = end > 0 ? width / end : 0;
  const double height = kTop + (kRow + kGap) * static_cast<double>(simulation.spans.size()) + kRow;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{:.0f}\" height=\"{:.0f}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n"
      "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
      "<text x=\"8\" y=\"22\" font-size=\"14\">{}: {} stages on {} workers, {} lanes, idle {:.1f} "
      "%</text>\n",
      kLeft + width + 12, height, schedule.name, schedule.shape.stages, schedule.shape.workers,
      schedule.shape.lanes, 100 * simulation.bubble);
  std::vector<Work> used;
  for (size_t worker = 0; worker < simulation.spans.size(); ++worker) {
    const double top = kTop + (kRow + kGap) * static_cast<double>(worker);
    svg += fmt::format("<text x=\"8\" y=\"{:.1f}\">worker {}</text>\n", top + kRow / 2 + 4, worker);
    for (const TaskSpan& span : simulation.spans[worker]) {
      const Look look = look_of(span.task.work);
      const double x = kLeft + scale * span.begin, wide = scale * (span.end - span.begin);
      if (std::find(used.begin(), used.end(), span.task.work) == used.end())
        used.push_back(span.task.work);
      svg += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.0f}\" fill=\"{}\" "
          "stroke=\"#555\" stroke-width=\"0.5\"/>\n",
          x, top, wide, kRow, look.colour);
      const std::string label = label_of(schedule.shape, span.task);
      if (kLetter * static_cast<double>(label.size()) < wide + kLetter)
        svg += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"middle\">{}</text>\n",
                           x + wide / 2, top + kRow / 2 + 4, label);
    }
  }
  std::sort(used.begin(), used.end());
  double x = kLeft;
  for (const Work work : used) {
    const Look look = look_of(work);
    svg += fmt::format(
        "<rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"12\" height=\"12\" fill=\"{}\"/>\n"
        "<text x=\"{:.0f}\" y=\"{:.0f}\">{}</text>\n",
        x, height - 20, look.colour, x + 18, height - 10, look.name);
    x += 34 + kLetter * static_cast<double>(look.name.size());
  }
  return svg + "</svg>\n";
}

}  // namespace artel::plan
