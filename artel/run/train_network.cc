#include "artel/run/train_network.h"

#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/observe/trace.h"
#include "artel/run/interrupt.h"
#include "artel/run/report.h"
#include "artel/run/setup.h"

namespace artel {
namespace {

// The step that a resumed run continues after; 0 if there is nothing to continue.
int64_t step_to_resume(const RunFolder& folder) {
  if (!std::filesystem::is_directory(folder.checkpoints())) return 0;
  const auto newest = checkpoint::load_newest(folder.checkpoints());
  return newest ? newest->checkpoint.step : 0;
}

FitOptions fit_options(const RunConfig& config, const RunData& data,
                       const std::filesystem::path& checkpoints, const RunOptions& options) {
  const TrainConfig& train = config.train;
  return {.batch_size = train.batch_size,
          .keep_last_batch = train.keep_last_batch,
          .epochs = train.steps > 0 ? 0 : train.epochs,
          .steps = train.steps,
          .augment = data.augment,
          .loader_threads = static_cast<int>(config.data.threads),
          .validation = data.split.test,
          .target_accuracy = train.target_accuracy,
          .patience = train.patience,
          .max_seconds = train.max_seconds,
          .checkpoints = checkpoints,
          .save_every = train.save_every,
          .keep_last = static_cast<int>(train.keep_last),
          .resume = options.resume,
          .timeline = !options.trace.empty(),
          .after_step = options.after_step,
          .after_epoch = options.after_epoch};
}

void save_trace(const std::vector<TimelineSpan>& spans, const std::filesystem::path& path) {
  observe::Trace trace;
  for (const TimelineSpan& span : spans) {
    trace.name_process(span.worker, fmt::format("worker {}", span.worker));
    trace.name_thread(span.worker, span.thread,
                      span.thread == Timeline::kMain ? "steps"
                      : span.thread == Timeline::kWire
                          ? "wire"
                          : fmt::format("lane {}", span.thread - Timeline::kFirstLane));
    trace.add({span.name, span.category, span.worker, span.thread, span.begin, span.seconds});
  }
  trace.save(path);
}

int64_t count_parameters(Trainer& trainer) {
  int64_t count = 0;
  for (const ParameterEntry& entry : trainer.parameters().entries())
    if (entry.trained) count += entry.shape.elements();
  return count;
}

// One worker: the data and the network of a run.
class Worker {
 public:
  Worker(const RunConfig& config, Cluster& cluster, const RunOptions& options)
      : config_(config),
        cluster_(cluster),
        options_(options),
        data_(open_data(config)),
        trainer_(cluster, make_model(config.model, data_.layout()), trainer_options(config)) {
    trainer_.build(sample_type(data_.layout(), data_.augment));
  }

  // What worker 0 does: it trains with the others, and writes and reports.
  TrainedNetwork lead(const RunFolder& folder);
  // What the others do: the same training, silently.
  TrainedNetwork follow();

 private:
  TrainedNetwork trained(FitResult result);
  void greet(RunReport& report, const RunFolder& folder, int64_t resumed_step);

  const RunConfig& config_;
  Cluster& cluster_;
  const RunOptions& options_;
  RunData data_;
  Trainer trainer_;
};

TrainedNetwork Worker::trained(FitResult result) {
  return {.result = {.fit = std::move(result), .parameters = count_parameters(trainer_)},
          .layout = data_.layout(),
          .weights = weights_in(trainer_.parameters())};
}

TrainedNetwork Worker::follow() {
  std::optional<StopOnSignal> stop;
  if (options_.stop_on_signals) stop.emplace(trainer_);
  return trained(trainer_.fit(data_.split.train, fit_options(config_, data_, {}, options_)));
}

// The first lines of a run.
void Worker::greet(RunReport& report, const RunFolder& folder, int64_t resumed_step) {
  report.note(fmt::format("{}: {} training and {} test samples {}, {} parameters", config_.data.set,
                          format_count(data_.split.train->size()),
                          format_count(data_.split.test->size()), to_string(data_.layout().input),
                          format_count(count_parameters(trainer_))));
  if (cluster_.size() > 1)
    for (const std::string& member : cluster_.members()) report.note(member);
  if (options_.resume) report.note(folder.resume_note("step", resumed_step));
}

TrainedNetwork Worker::lead(const RunFolder& folder) {
  load_configured_weights(trainer_, config_.model);
  const int64_t resumed_step = options_.resume ? step_to_resume(folder) : 0;
  const bool is_new = std::filesystem::create_directories(folder.path());
  write_file_atomically(folder.config(), to_toml(config_));
  folder.save_layout(data_.layout());

  std::optional<StopOnSignal> stop;
  if (options_.stop_on_signals) stop.emplace(trainer_);
  RunReport report(folder, resumed_step, data_.layout().target_kind == data::TargetKind::classes,
                   options_.quiet);
  greet(report, folder, resumed_step);

  FitOptions fit = fit_options(config_, data_, folder.checkpoints(), options_);
  fit.resume = resumed_step > 0;
  bool begun = false;
  // Before the callbacks of users, who may want to see the folder.
  fit.after_step.insert(fit.after_step.begin(), [&](const TrainingState& state) {
    begun = true;
    report.after_step(state);
    return true;
  });
  fit.after_epoch.insert(fit.after_epoch.begin(), [&](const TrainingState& state) {
    report.after_epoch(state);
    return true;
  });
  TrainedNetwork result;
  try {
    result = trained(trainer_.fit(data_.split.train, fit));
  } catch (...) {
    if (is_new && !begun) std::filesystem::remove_all(folder.path());
    throw;
  }
  write_file_atomically(folder.plan(), to_string(trainer_.choices()));
  report.finish(result.result.fit, result.result.parameters);
  if (!options_.trace.empty()) save_trace(result.result.fit.timeline, options_.trace);
  if (stop) result.result.signal = StopOnSignal::received();
  return result;
}

}  // namespace

NamedTensors weights_in(const Parameters& parameters) {
  NamedTensors weights;
  for (const ParameterEntry& entry : parameters.entries())
    weights.push_back({entry.name, parameters.get(entry.name)});
  return weights;
}

TrainedNetwork train_network(const RunConfig& config, Cluster& cluster, const RunFolder* folder,
                             const RunOptions& options) {
  Worker worker(config, cluster, options);
  return folder ? worker.lead(*folder) : worker.follow();
}

}  // namespace artel
