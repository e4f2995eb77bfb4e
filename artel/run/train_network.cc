#include "artel/run/train_network.h"

#include <algorithm>
#include <filesystem>

#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/host_name.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/checkpoint/checkpoint.h"
#include "artel/cluster/launcher.h"
#include "artel/cluster/worker_name.h"
#include "artel/comm/transports/transports.h"
#include "artel/observe/trace.h"
#include "artel/predict/load_weights.h"
#include "artel/run/config/advice.h"
#include "artel/run/config/setup.h"
#include "artel/run/config/unused.h"
#include "artel/run/folder/fingerprint.h"
#include "artel/run/folder/identity.h"
#include "artel/run/folder/resume.h"
#include "artel/run/folder/run_elsewhere.h"
#include "artel/run/interrupt.h"
#include "artel/run/report/class_report.h"
#include "artel/run/report/exhibits.h"
#include "artel/run/report/live_report.h"
#include "artel/run/report/recent_states.h"
#include "artel/run/report/report.h"
#include "artel/run/report/trace_desk.h"
#include "artel/run/report/trace_file.h"
#include "artel/run/samples/frozen_layers.h"
#include "artel/run/samples/teachers.h"
#include "artel/train/lane_count.h"
#include "artel/train/loop/facts.h"

namespace artel {
namespace {

namespace fs = std::filesystem;

// The step after which a resumed run continues; 0 without a checkpoint.
int64_t step_to_resume(const RunFolder& folder) {
  if (!std::filesystem::is_directory(folder.checkpoints())) return 0;
  const auto newest = checkpoint::load_newest(folder.checkpoints());
  return newest ? newest->checkpoint.step : 0;
}

// The samples for evaluation after each epoch.
data::DatasetPtr judged_samples(const RunConfig& config, const RunData& data) {
  const data::DatasetPtr& all = data.validation ? data.validation : data.test;
  const int64_t most = config.train.test_batches * config.train.batch_size, size = all->size();
  if (most == 0 || size <= most) return all;
  std::vector<int64_t> some;
  for (int64_t i = 0; i < most; ++i) some.push_back(i * size / most);
  return data::subset(all, some);
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
          .validation = train.test ? judged_samples(config, data) : nullptr,
          .facts = own_key_values(config),
          .target_accuracy = train.target_accuracy,
          .patience = train.patience,
          .max_seconds = train.max_seconds,
          .best_by = train.best_by,
          .noise_every = train.noise_every,
          .checkpoints = checkpoints,
          .save_every = train.save_every,
          .keep_last = static_cast<int>(train.keep_checkpoints),
          .resume = options.resume,
          .gather_network = options.uses_network,
          .timeline = !options.trace.empty(),
          .after_step = options.after_step,
          .after_epoch = options.after_epoch};
}

int64_t count_parameters(Trainer& trainer) {
  int64_t count = 0;
  for (const ParameterEntry& entry : trainer.layout().entries())
    if (!entry.is_state) count += entry.shape.elements();
  return count;
}

// With kept features, the trainer sees only the part of the network above them.
TrainerOptions options_for(const RunConfig& config, const RunData& data, const Model& model,
                           const std::optional<KeptFeatures>& kept, int threads,
                           bool untested_device) {
  TrainerOptions options = trainer_options(config, data.layout());
  if (untested_device && !options.device.ends_with(" untested")) options.device += " untested";
  options.teacher = open_teacher(config, data, model, threads);
  options.class_weights = class_weights(config, *data.train);
  if (!kept) return options;
  const std::vector<std::string> names = parameter_names(model, kept->value);
  std::erase_if(options.freeze, [&](const std::string& prefix) {
    return std::none_of(names.begin(), names.end(),
                        [&](const std::string& name) { return name.starts_with(prefix); });
  });
  return options;
}

int threads_of(const RunConfig& config, const Cluster& cluster) {
  const int64_t given = config.cluster.threads;
  return given > 0 ? static_cast<int>(given) : cluster.cores();
}

// Features are cached before a trainer exists, which chooses lanes by the same rule.
std::optional<KeptFeatures> features_of(const RunConfig& config, const RunData& data,
                                        const Cluster& cluster) {
  if (!config.train.cache) return {};
  require(config.cluster.lanes > 0 || !cluster.outside(), ErrorKind::invalid_argument,
          "train.cache: a newcomer has to know the number of lanes; set cluster.lanes");
  const Model model = make_model(config.model, data.layout());
  const LaneCount count = lanes_of_new_run(
      lane_request(config, model, sample_type(data.layout(), data.augment), cluster.size()));
  return keep_features(config, data, judged_samples(config, data), model, count.lanes,
                       threads_of(config, cluster));
}

// 0 if samples are not texts.
int64_t tokens_in_sample(const data::SampleLayout& layout) {
  return layout.tokenizer ? layout.input.back() : 0;
}

// Returns false and warns if the folder is in use for a different run. A different run that is not
// in progress is moved aside.
bool has_room(const RunFolder& folder, const std::string& identity) {
  try {
    make_room(folder, identity);
  } catch (const Error& error) {
    log(LogLevel::warning, "this machine keeps no copy of checkpoints: {}", error.what());
    return false;
  }
  return true;
}

// One worker: the data and the network of a run. Worker 0 trains with the others, and writes and
// reports; the others do the same training, silently.
class Worker {
 public:
  Worker(const RunConfig& config, Cluster& cluster, const RunOptions& options,
         const std::shared_ptr<const data::TableEncoder>& learnt)
      : config_(config),
        cluster_(cluster),
        options_(options),
        data_(open_data(config, learnt)),
        kept_(features_of(config, data_, cluster)),
        model_(kept_ ? kept_->above : make_model(config.model, data_.layout())),
        trainer_(cluster, model_,
                 options_for(config, data_, model_, kept_, threads_of(config, cluster),
                             options.untested_device)),
        exhibits_(config, data_, judged_samples(config, data_), model_, trainer_,
                  threads_of(config, cluster)) {
    const TensorType sample = kept_ ? kept_->value : sample_type(data_.layout(), data_.augment);
    check_vocabulary(data_.layout(), model_, sample);
    advice_ = check_outputs(config, data_.layout(), output_of(model_, sample));
    trainer_.build(sample);
  }

  TrainedNetwork train(std::optional<ClaimedFolder>& folder);

 private:
  const std::string& fingerprint() {
    if (fingerprint_.empty()) fingerprint_ = fingerprint_of(config_, data_);
    return fingerprint_;
  }
  TrainedNetwork trained(FitResult result);
  void greet(const RunFolder& folder);
  void warn();
  void prepare(const RunFolder& folder);
  FitOptions reporting(std::optional<ClaimedFolder>& own);
  std::string identity_for(const RunFolder& folder) const;
  RunConfig with_lanes() const;
  void begin(const RunFolder& folder, int64_t step);
  void tell_live(const TrainingState& state);
  void write_events();
  FitResult fit(std::optional<ClaimedFolder>& own);
  // True if this worker's machine is not worker 0's, so that its user does not see the report.
  bool is_remote() const;
  void tell_remote_user(const TrainingState& state);
  void follow(const fs::path& checkpoints);
  void list_workers(const RunFolder& folder, const Membership& membership);
  void finish(const TrainedNetwork& network, const RunFolder& folder);

  const RunConfig& config_;
  Cluster& cluster_;
  const RunOptions& options_;
  RunData data_;
  std::optional<KeptFeatures> kept_;  // of frozen layers; replace the samples in training
  std::string fingerprint_;           // of the data, of a worker that reports
  Model model_;
  Trainer trainer_;
  Exhibits exhibits_;
  std::vector<std::string> advice_;
  int64_t resumed_step_ = 0;               // at worker 0
  std::optional<RunReport> report_;        // at worker 0
  std::optional<LiveReport> live_;         // at worker 0
  std::optional<RunElsewhere> elsewhere_;  // at workers on other machines than worker 0
  std::optional<TraceDesk> traces_;        // at worker 0 and these
  int64_t told_generation_ = -1;           // generation of the last membership that was logged here
  RecentStates recent_;                    // at the others
};

TrainedNetwork Worker::trained(FitResult result) {
  TrainedNetwork network = {
      .result = {.fit = std::move(result), .parameters = count_parameters(trainer_)},
      .layout = data_.layout(),
      .weights = {}};
  network.has_all_weights = !kept_;
  if (!options_.uses_network || kept_) return network;
  network.weights = trainer_.parameters();
  const NamedTensors averaged = std::exchange(network.result.fit.averaged, {});
  if (averaged.empty()) return network;
  network.weights = Parameters(trainer_.layout().entries());
  load_weights(network.weights, averaged);
  return network;
}

// The first lines of a run.
void Worker::greet(const RunFolder& folder) {
  const int64_t frozen = kept_ ? kept_->parameters : 0;
  report_->note(fmt::format("{}: {} {}, {}", config_.data.set, sizes_of(data_),
                            to_string(data_.layout().input),
                            counted(count_parameters(trainer_) + frozen, "parameter")));
  if (cluster_.size() > 1)
    for (const std::string& member : cluster_.members()) report_->note(member);
  if (options_.resume) report_->note(folder.resume_note(resumed_step_));
}

// Logs warnings about likely mistakes of the user.
void Worker::warn() {
  for (const auto& lines : {advice_, unused_settings(config_, cluster_.size()),
                            unused_settings(config_, data_, trainer_.layout())})
    for (const std::string& line : lines) log(LogLevel::warning, "{}", line);
}

// Preparations of the first worker 0, which has the initial state of the run.
void Worker::prepare(const RunFolder& folder) {
  if (!options_.trace.empty()) observe::Trace().save(options_.trace);  // now, not when all is done
  if (options_.resume) {
    check_changes(folder, config_, fingerprint(), options_.force);
    checkpoint::sweep(folder.checkpoints());
    resumed_step_ = step_to_resume(folder);
  }
  // A checkpoint has all weights, so a resumed run does not need the file that it began with.
  if (resumed_step_ == 0)
    load_configured_weights(trainer_, config_.model, kept_ ? kept_->frozen : NamedTensors());
  report_.emplace(folder, resumed_step_, data_.judge(), options_.quiet,
                  names_of_classes(data_.layout()), tokens_in_sample(data_.layout()));
  warn();
  greet(folder);
}

// The configuration with all automatic choices filled in, so that it repeats the run bit for bit.
RunConfig Worker::with_lanes() const {
  RunConfig config = config_;
  if (const int lanes = trainer_.lanes(); lanes > 0) config.cluster.lanes = lanes;
  return config;
}

// The identity of the resumed run, or one for a new run.
std::string Worker::identity_for(const RunFolder& folder) const {
  const std::string known = options_.resume ? identity_of(folder) : "";
  return known.empty() ? new_identity() : known;
}

void Worker::begin(const RunFolder& folder, int64_t step) {
  write_file_atomically(folder.config(), to_toml(with_lanes()));
  folder.save_layout(data_.layout(), fingerprint());
  report_->begin();
  if (const int lanes = trainer_.lanes(); lanes > 0) report_->note(counted(lanes, "lane"));
  report_->write([&] { exhibits_.begin(folder, step, report_->metrics()); });
  if (config_.observe.live) live_.emplace(folder, cluster_.vitals(), config_);
  traces_.emplace(folder, [this](int64_t steps) { trainer_.request_trace(steps); });
  elsewhere_.reset();
  // An epoch is saved after its line was printed.
  const std::vector<fs::path> saved = checkpoint::list_checkpoints(folder.checkpoints());
  recent_.tell(*report_, saved.empty() ? 0 : checkpoint::step_of(saved.back()).value_or(0));
}

// Where workers that are started by hand meet; empty with a launcher.
std::string meeting_address(const comm::GroupOptions& place) {
  const bool by_hand = comm::meeting_of(place) == comm::Meeting::address && !launched_group();
  return by_hand ? place.address : "";
}

// Writes the addresses of the workers for `artel leave` and newcomers.
void Worker::list_workers(const RunFolder& folder, const Membership& membership) {
  if (membership.members.empty()) return;
  RunWorkers listed = {.transport = cluster_.options().transport,
                       .token = cluster_.options().token,
                       .encrypt = cluster_.options().encrypt,
                       .address = meeting_address(cluster_.options()),
                       .workers = {}};
  for (const auto& member : membership.members)
    listed.workers.push_back({member.number, member.host, member.process, member.door});
  report_->write([&] { folder.save_workers(listed); });
}

bool Worker::is_remote() const {
  const comm::Group* const group = cluster_.membership().group.get();
  if (!group || group->rank() == 0) return false;
  const std::vector<std::string> hosts = group->hosts();
  return hosts[group->rank()] != hosts.front();
}

// Once for each membership.
void Worker::tell_remote_user(const TrainingState& state) {
  const Membership& membership = cluster_.membership();
  if (std::exchange(told_generation_, membership.generation) == membership.generation ||
      !is_remote())
    return;
  log(LogLevel::info, "{} trains with {}, from step {}; {} reports and saves",
      worker_name(*membership.group, membership.rank()),
      counted(membership.size() - 1, "other worker"), state.step,
      worker_name(*membership.group, 0));
}

// Commands on the machine of this worker find the run although its folder is elsewhere.
void Worker::follow(const fs::path& checkpoints) {
  const std::string machine = is_remote() ? cluster_.group()->hosts().front() : "";
  if (elsewhere_ && elsewhere_->machine() == machine) return;
  traces_.reset();
  elsewhere_.reset();
  if (machine.empty() || checkpoints.empty()) return;
  try {
    elsewhere_.emplace(checkpoints.parent_path(), machine, to_toml(with_lanes()));
    traces_.emplace(elsewhere_->here(), [this](int64_t steps) { trainer_.request_trace(steps); });
  } catch (const std::exception& error) {
    log(LogLevel::debug, "commands on this machine do not find the run: {}", error.what());
  }
}

// Updates live data and logs alerts.
void Worker::tell_live(const TrainingState& state) {
  live_->after_step(state);
  write_events();
}

void Worker::write_events() {
  for (const observe::LiveEvent& event : live_->take_events())
    report_->write_event(event.step, event.kind, event.text);
}

FitResult Worker::fit(std::optional<ClaimedFolder>& own) {
  try {
    return trainer_.fit(kept_ ? kept_->train : data_.train, reporting(own));
  } catch (const std::exception& error) {
    if (live_ && report_) {
      live_->raise("failed", error.what(), true);
      write_events();
    }
    throw;
  }
}

FitOptions Worker::reporting(std::optional<ClaimedFolder>& own) {
  FitOptions fit =
      fit_options(config_, data_, own ? own->folder.checkpoints() : fs::path(), options_);
  fit.resume = resumed_step_ > 0;
  // Workers of one machine read the same files.
  const comm::GroupOptions& place = cluster_.options();
  if ((cluster_.group() || cluster_.outside()) && comm::meeting_of(place) != comm::Meeting::name)
    fit.files = file_digests(config_);
  if (kept_) {
    fit.augment = {};
    if (kept_->judged && config_.train.test) fit.validation = kept_->judged;
    fit.enclosing_weights = kept_->frozen;
  }
  fit.mistakes = exhibits_.mistakes();
  fit.checkpoint_copies = static_cast<int>(config_.cluster.checkpoint_copies);
  if (own) fit.identity = identity_for(own->folder);
  fit.before_copying = [&](const fs::path& checkpoints, const std::string& identity) {
    const RunFolder folder(checkpoints.parent_path());
    if (!has_room(folder, identity)) return false;
    fs::create_directories(folder.path());
    save_identity(folder, identity);
    write_file_atomically(folder.config(), to_toml(with_lanes()));
    folder.save_layout(data_.layout(), fingerprint());
    log(LogLevel::info, "{} on {} keeps a copy of each checkpoint", folder.path().string(),
        host_name());
    return true;
  };
  // Until everything has been checked, nothing in the folder changes.
  fit.before_leading = [&](int64_t step, const fs::path& checkpoints, const std::string& identity) {
    if (!own) {
      make_room(RunFolder(checkpoints.parent_path()), identity);
      own = take_over_folder(RunFolder(checkpoints.parent_path()));
      log(LogLevel::info, "the run is stored in {} on {} from step {} on",
          own->folder.path().string(), host_name(), step);
      const int64_t written = observe::last_step_written(own->folder.path());
      report_.emplace(own->folder, recent_.continue_after(step, written), data_.judge(),
                      options_.quiet, names_of_classes(data_.layout()),
                      tokens_in_sample(data_.layout()));
    }
    save_identity(own->folder, identity);
    begin(own->folder, step);
  };
  fit.after_leading = [&] {
    live_.reset();
    traces_.reset();
    report_->sync();
    report_.reset();
    own.reset();
  };
  fit.before_membership = [&](const Membership& membership) {
    // Newcomers, which may have to take over, do not know the earlier metrics.
    report_->flush();
    list_workers(own->folder, membership);
    if (live_) live_->set_membership(membership);
  };
  fit.before_following = [&](const fs::path& checkpoints) { follow(checkpoints); };
  fit.before_save = [&] {
    require(fs::exists(own->folder.path()), ErrorKind::not_found,
            "[{}] the folder of this run was removed, or is out of reach",
            own->folder.path().string());
    // A worker that was suspended and finds that the others have continued joins them again.
    require(!own->lock || own->lock->held(),
            cluster_.elastic() ? ErrorKind::communication : ErrorKind::cancelled,
            "[{}] another process has taken over this run", own->folder.path().string());
    report_->sync();
  };
  fit.after_trace = [&](StepTrace trace) {
    if (traces_) traces_->hand_in(std::move(trace), worker_names(cluster_.membership()));
  };
  fit.while_testing = [&](int64_t done, int64_t samples) {
    if (report_) report_->while_testing(done, samples);
  };
  // Runs before the users' callbacks, which may read the folder.
  fit.after_step.insert(fit.after_step.begin(), [&](const TrainingState& state) {
    cluster_.vitals().set(vitals_of(state, threads_of(config_, cluster_)));
    if (report_) {
      own->begun = true;
      report_->after_step(state);
      if (live_) tell_live(state);
    } else {
      tell_remote_user(state);
      recent_.add(state, false);
    }
    return true;
  });
  fit.after_epoch.insert(fit.after_epoch.begin(), [&](const TrainingState& state) {
    if (report_) {
      report_->after_epoch(state);
      report_->write([&] { exhibits_.after_epoch(own->folder, state, report_->metrics()); });
    } else {
      recent_.add(state, true);
    }
    return true;
  });
  return fit;
}

TrainedNetwork Worker::train(std::optional<ClaimedFolder>& own) {
  if (own) prepare(own->folder);
  std::optional<StopOnSignal> stop;
  if (options_.stop_on_signals) stop.emplace(trainer_);
  TrainedNetwork network = trained(fit(own));
  live_.reset();
  traces_.reset();
  const FitResult& done = network.result.fit;
  network.result.summary = summary_text(done, network.result.parameters, to_string(data_.judge()),
                                        names_of_classes(data_.layout()));
  const int received = stop ? StopOnSignal::received() : 0;
  if (report_ || done.stopped_by == "request")
    network.result.signal = received != 0 ? received : done.stop_signal;
  if (!report_) {
    if (is_remote())
      log(LogLevel::info, "{} ends after step {}: {}",
          worker_name(*cluster_.group(), cluster_.rank()), done.last.step, done.stopped_by);
    return network;
  }
  std::error_code ignored;
  fs::remove(own->folder.workers(), ignored);
  finish(network, own->folder);
  return network;
}

void Worker::finish(const TrainedNetwork& network, const RunFolder& folder) {
  // Resuming a finished run does not change it.
  const FitResult& done = network.result.fit;
  if (resumed_step_ == 0 || done.last.step > resumed_step_ || !done.epochs.empty()) {
    report_->write([&] { exhibits_.finish(folder, done, report_->metrics()); });
    report_->finish(done, network.result.parameters, to_string(trainer_.choices()));
  } else {
    report_->note(fmt::format("nothing is left to do after step {}", resumed_step_));
  }
  if (options_.trace.empty()) return;
  const auto trace = save_trace(done.timeline, worker_names(cluster_.membership()), options_.trace,
                                folder.trace_summary());
  if (trace && !options_.quiet) fmt::print("\n{}", to_text(*trace));
}

}  // namespace

TrainedNetwork train_network(const RunConfig& config, Cluster& cluster,
                             std::optional<ClaimedFolder>& folder, const RunOptions& options,
                             const std::shared_ptr<const data::TableEncoder>& learnt) {
  return Worker(config, cluster, options, learnt).train(folder);
}

}  // namespace artel
