#include "artel/run/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "artel/base/file.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/observe/plot.h"
#include "artel/run/server_report.h"

namespace artel {
namespace {

nlohmann::ordered_json summary(const FitResult& result, int64_t parameters) {
  const TrainingState& last = result.last;
  nlohmann::ordered_json json = {{"step", last.step},
                                 {"loss", last.loss},
                                 {"parameters", parameters},
                                 {"samples", last.samples},
                                 {"seconds", last.seconds},
                                 {"seconds_waiting_for_data", last.seconds_waited},
                                 {"seconds_waiting_for_workers", last.seconds_exchanging},
                                 {"sent_bytes", last.sent_bytes},
                                 {"stopped_by", result.stopped_by}};
  if (last.tested) {
    json["test_loss"] = result.epochs.back().test_loss;
    json["test_accuracy"] = result.epochs.back().test_accuracy;
  }
  add_server_report(json, result.servers);
  return json;
}

observe::Series series_of(const std::string& name,
                          const std::vector<std::pair<int64_t, double>>& points) {
  return observe::thinned({.name = name, .points = {points.begin(), points.end()}});
}

}  // namespace

void draw_curves(const RunFolder& folder) {
  const auto metrics = observe::read_metrics(folder.path());
  std::vector<observe::Plot> panels;
  for (const std::string name : {"loss", "accuracy"}) {
    observe::Plot plot{.title = name, .x_label = "step", .y_label = name, .series = {}};
    for (const std::string part : {"train", "test"})
      if (const auto found = metrics.find(part + "/" + name); found != metrics.end())
        plot.series.push_back(series_of(part, found->second));
    if (!plot.series.empty()) panels.push_back(std::move(plot));
  }
  if (!panels.empty()) write_file_atomically(folder.curves(), observe::to_svg(panels));
}

RunReport::RunReport(RunFolder folder, int64_t resumed_step, bool has_classes, bool quiet)
    : folder_(std::move(folder)),
      has_classes_(has_classes),
      metrics_(folder_.path(), resumed_step) {
  if (!quiet) progress_.emplace();
}

void RunReport::after_step(const TrainingState& state) {
  if (progress_)
    progress_->update({.epoch = state.epoch,
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
  observe::Scalars scalars;
  if (state.tested) {
    line += fmt::format(", test loss {:.4f}", state.test_loss);
    scalars.emplace_back("test/loss", state.test_loss);
  }
  if (state.tested && has_classes_) {
    line += fmt::format(", test accuracy {:.4f}", state.test_accuracy);
    scalars.emplace_back("test/accuracy", state.test_accuracy);
  }
  note(fmt::format("{}, {}", line, format_duration(state.seconds)));
  metrics_.write(state.step, scalars);
}

void RunReport::finish(const FitResult& result, int64_t parameters) {
  if (progress_) progress_->clear();
  metrics_.flush();
  draw_curves(folder_);
  write_file_atomically(folder_.summary(), summary(result, parameters).dump(2) + "\n");
  if (!progress_) return;
  fmt::print("{}", table_of(result, parameters).text());
  std::fflush(stdout);
}

observe::Table RunReport::table_of(const FitResult& result, int64_t parameters) const {
  const TrainingState& last = result.last;
  observe::Table table({"result", ""});
  if (last.tested) {
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
  if (last.sent_bytes > 0) {
    table.add({"waiting for workers",
               fmt::format("{:.1f} %", 100 * last.seconds_exchanging / last.seconds)});
    table.add({"sent by a worker", format_bytes(static_cast<double>(last.sent_bytes))});
  }
  add_server_report(table, result.servers);
  table.add({"stopped by", result.stopped_by});
  table.add({"folder", folder_.path().string()});
  return table;
}

}  // namespace artel
