#include "artel/cli/report.h"

#include <algorithm>

#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/observe/plot.h"
#include "artel/observe/table.h"

namespace artel::cli {
namespace {

constexpr size_t kMostPoints = 300;  // of a curve: more cannot be told apart

using Points = std::vector<std::pair<int64_t, double>>;

// Means of neighbouring points, if there are more than can be seen.
observe::Series thinned(const std::string& name, const Points& points) {
  observe::Series series{.name = name, .points = {}, .markers = points.size() < 60};
  const size_t group = (points.size() + kMostPoints - 1) / kMostPoints;
  for (size_t begin = 0; begin < points.size(); begin += group) {
    const size_t end = std::min(points.size(), begin + group);
    double sum = 0;
    for (size_t i = begin; i < end; ++i) sum += points[i].second;
    series.points.emplace_back(points[end - 1].first, sum / static_cast<double>(end - begin));
  }
  return series;
}

}  // namespace

void draw_curves(const RunFolder& folder) {
  const auto metrics = observe::read_metrics(folder.path());
  std::vector<observe::Plot> panels;
  for (const std::string name : {"loss", "accuracy"}) {
    observe::Plot plot{.title = name, .x_label = "step", .y_label = name, .series = {}};
    for (const std::string part : {"train", "test"})
      if (const auto found = metrics.find(part + "/" + name); found != metrics.end())
        plot.series.push_back(thinned(part, found->second));
    if (!plot.series.empty()) panels.push_back(std::move(plot));
  }
  if (!panels.empty()) write_file_atomically(folder.curves(), observe::to_svg(panels));
}

RunReport::RunReport(RunFolder folder, int64_t resumed_step, bool has_classes)
    : folder_(std::move(folder)),
      has_classes_(has_classes),
      metrics_(folder_.path(), resumed_step) {}

void RunReport::after_step(const TrainingState& state) {
  progress_.update({.epoch = state.epoch,
                    .epochs = state.epochs,
                    .step = state.step,
                    .steps = state.steps,
                    .samples = state.samples,
                    .loss = state.loss,
                    .metric_name = has_classes_ ? "accuracy" : "",
                    .metric = state.accuracy});
  observe::Scalars scalars = {{"train/loss", state.loss},
                              {"train/learning_rate", state.learning_rate}};
  if (has_classes_) scalars.emplace_back("train/accuracy", state.accuracy);
  metrics_.write(state.step, scalars);
}

void RunReport::after_epoch(const TrainingState& state) {
  std::string line = fmt::format("epoch {}/{}: loss {:.4f}", state.epoch, state.epochs, state.loss);
  if (has_classes_) line += fmt::format(", accuracy {:.4f}", state.accuracy);
  line += fmt::format(", test loss {:.4f}", state.test_loss);
  observe::Scalars scalars = {{"test/loss", state.test_loss}};
  if (has_classes_) {
    line += fmt::format(", test accuracy {:.4f}", state.test_accuracy);
    scalars.emplace_back("test/accuracy", state.test_accuracy);
  }
  progress_.note(fmt::format("{}, {}", line, format_duration(state.seconds)));
  metrics_.write(state.step, scalars);
}

void RunReport::finish(const FitResult& result, int64_t parameters) {
  progress_.clear();
  metrics_.flush();
  draw_curves(folder_);
  const TrainingState& last = result.last;
  observe::Table table({"result", ""});
  if (!result.epochs.empty()) {
    const TrainingState& epoch = result.epochs.back();
    if (has_classes_) {
      const auto best = std::max_element(result.epochs.begin(), result.epochs.end(),
                                         [](const TrainingState& a, const TrainingState& b) {
                                           return a.test_accuracy < b.test_accuracy;
                                         });
      table.add(
          {"test accuracy", fmt::format("{:.4f} (best {:.4f} after epoch {})", epoch.test_accuracy,
                                        best->test_accuracy, best->epoch)});
    }
    table.add({"test loss", fmt::format("{:.4f}", epoch.test_loss)});
  }
  table.add({"training loss", fmt::format("{:.4f}", last.loss)});
  table.add({"steps", fmt::format("{} ({} epochs)", format_count(last.step), last.epoch)});
  table.add({"parameters", format_count(parameters)});
  table.add({"time", format_duration(last.seconds)});
  if (last.seconds > 0) {
    table.add({"speed", fmt::format("{} samples/s", format_count(static_cast<int64_t>(
                                                        last.samples / last.seconds)))});
    table.add(
        {"waiting for data", fmt::format("{:.1f} %", 100 * last.seconds_waited / last.seconds)});
  }
  table.add({"stopped by", result.stopped_by});
  table.add({"folder", folder_.path().string()});
  fmt::print("{}", table.text());
  std::fflush(stdout);
}

}  // namespace artel::cli
