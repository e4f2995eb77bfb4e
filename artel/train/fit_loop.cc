#include "artel/train/fit_loop.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "artel/base/disk.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/cluster/worker_name.h"
#include "artel/train/divided_state.h"
#include "artel/train/strategies/shared_options.h"

namespace artel {
namespace {

// Weights that no network can compute with must never replace good ones: what is not finite, and
// what is not when it is squared. They are looked at on their way to the file.
void check_weights(const Parameters& parameters, std::vector<TensorSource>& weights) {
  for (TensorSource& weight : weights)
    weight.give = [give = weight.give, entry = parameters.entry(weight.name)](const auto& write) {
      give([&](std::span<const std::byte> piece) {
        const std::span values(reinterpret_cast<const float*>(piece.data()),
                               piece.size() / sizeof(float));
        for (const float value : values)
          require(std::isfinite(entry.is_state ? value : value * value), ErrorKind::numeric,
                  "parameter '{}' has grown to {}; try a lower learning rate", entry.name,
                  std::isnan(value) ? std::fabs(value) : value);
        write(piece);
      });
    };
}

}  // namespace

FitLoop::FitLoop(Trainer& trainer, TrainerState& state, data::DatasetPtr train,
                 const FitOptions& options)
    : trainer_(trainer),
      s_(state),
      options_(options),
      kind_(find_strategy(s_.options.strategy, s_.cluster.servers())),
      asked_(s_.options.strategy_options),
      data_check_(options.files),
      validation_(options.validation && options.validation->size() > 0 ? options.validation
                                                                       : nullptr),
      loader_(train, {.sampling = {.batch_size = options.batch_size,
                                   .seed = s_.options.seed,
                                   .last_batch = options.keep_last_batch ? data::LastBatch::keep
                                                                         : data::LastBatch::drop},
                      .augmentation = options.augment,
                      .threads = options.loader_threads,
                      .epochs = options.steps > 0 && options.epochs <= 0 ? 0 : options.epochs}),
      per_epoch_(loader_.sampler().batches_per_epoch()),
      mirrors_(asked_.of<MirrorOptions>().mirror_every) {
  checkpoints_ = options.checkpoints;
  s_.build(input_type(loader_.layout()));
  s_.before_change = [this] {
    finish_saving();
    mirrors_.before_update(s_.step + 1);
    if (arrival_) arrival_->wait();
  };
  resume();
  const bool by_steps = options.epochs <= 0 || options.epochs > INT64_MAX / per_epoch_;
  const int64_t by_epochs = by_steps ? INT64_MAX : options.epochs * per_epoch_;
  now_.steps = options.steps > 0 ? std::min(options.steps, by_epochs) : by_epochs;
  now_.steps_per_epoch = per_epoch_;
  now_.epochs = now_.steps / per_epoch_ + (now_.steps % per_epoch_ > 0 ? 1 : 0);
  knock();
  read_traffic();
  traffic_before_.all -= traffic_.all;
  traffic_before_.between_hosts -= traffic_.between_hosts;
  with_whoever_is_left([] {});
  schedule_.emplace(s_.options.schedule, s_.options.optimizer.learning_rate,
                    optim::Horizon{.total_steps = now_.steps,
                                   .steps_per_epoch = per_epoch_,
                                   .batch_size = options.batch_size});
  const bool counts_accuracy = metrics_.find("accuracy") != nullptr;
  if (options.best_by != "loss") {
    const Metric* const metric = metrics_.find(options.best_by);
    std::vector<std::string> measured = {"loss"};
    for (const Metrics::Part& part : metrics_.parts())
      if (part.metric.value) measured.push_back(part.metric.name);
    require(metric && metric->value, ErrorKind::invalid_argument,
            "best_by: got \"{}\", expected a metric of one number that this run measures: {}; "
            "train.metrics adds others",
            options.best_by, artel::join(measured, ", "));
    less_is_better_ = metric->less_is_better;
  }
  require(options.target_accuracy == 0 || counts_accuracy, ErrorKind::invalid_argument,
          "target_accuracy: got {}, but the accuracy is not measured; try train.metrics = "
          "[\"accuracy\"] for data with classes, or leave it out",
          options.target_accuracy);
  if (options.noise_every > 0 && s_.lanes == 1 && s_.cluster.rank() == 0)
    log(LogLevel::warning,
        "train.noise_every has no effect with one lane, which has nothing to differ from; try "
        "cluster.lanes = 8");
  if (const auto* plateau = std::get_if<optim::Plateau>(&s_.options.schedule.shape)) {
    require(!plateau->maximize || counts_accuracy, ErrorKind::invalid_argument,
            "[schedule plateau] maximize: got true, but there is no accuracy to watch; try false, "
            "or train.metrics = [\"accuracy\"] for data with classes");
    plateau_.emplace(*plateau, s_.plateau);
  }
}

FitLoop::~FitLoop() {
  s_.before_change = {};
  s_.set_strategy(nullptr);
  s_.options.strategy_options = asked_;
  s_.in_parts = s_.in_parts || (divides_ && !gathered_);
}

FitResult FitLoop::run() {
  with_whoever_is_left([this] { train(); });
  return std::move(result_);
}

// The one place that catches a broken group: the members that are left form another one, share the
// state of whoever has finished most, and go on from there.
void FitLoop::with_whoever_is_left(const std::function<void()>& body) {
  while (true) try {
      join_if_changed();
      return body();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::communication) throw;
      regroup(error);
    }
}

void FitLoop::regroup(const Error& cause) {
  if (strategy_ && !strategy_->can_lose_workers()) throw cause;
  broken_at_ = Clock::now();
  read_traffic();
  if (!interrupted_) interrupted_ = phase_began_;
  try {
    finish_saving();
  } catch (const Error& error) {
    // A checkpoint that needs the parts of others breaks off with the group.
    if (error.kind() != ErrorKind::communication) throw;
  }
  const auto rank = static_cast<size_t>(s_.cluster.rank());
  const bool progressed = std::exchange(broken_after_, s_.step) != s_.step;
  const MembershipChange change = s_.cluster.regroup(cause, progressed);
  rejoined_ = true;
  lost_.insert(lost_.end(), change.gone.begin(), change.gone.end());
  const int64_t step = s_.step;
  const bool lacks_state = !late_.empty() && late_[rank];
  late_.clear();
  if (lacks_state) s_.step = -1;
  if (change.rejoined || lacks_state) {
    // What this worker has is not the state of the run any more, or not yet.
    s_.generation = -1;
    saved_ = told_ = -1;
    mirrors_.end();
    mirrors_.keep_only(-1);
  }
  // Those who are behind do not know why the others have stopped: all find out once more.
  s_.stop = s_.stop || asked_to_stop_;
  asked_to_stop_ = false;
  result_.stopped_by.clear();
  if (change.gone.empty() && change.came.empty()) return;
  ChangedWorkers changed = {.gone = change.gone,
                            .came = change.came,
                            .staying = {},
                            .step = step,
                            .at = seconds_between(begin_, broken_at_),
                            .seconds = change.seconds};
  for (const auto& member : s_.cluster.membership().members)
    changed.staying.push_back(member.number);
  result_.changes.push_back(std::move(changed));
}

// A newcomer has everything ready before it asks to be let in, so that the others wait for nothing
// but its copy of the state.
void FitLoop::knock() {
  // Newcomers are compared before they are let in, and servers leave workers no common steps.
  if (s_.cluster.outside() || s_.cluster.servers() > 0) data_check_.wait();
  if (!s_.cluster.elastic()) return;
  introduce();
  if (!s_.cluster.outside()) return;
  make_workload()->compile();
  s_.cluster.enter();
  rejoined_ = true;
}

void FitLoop::introduce() {
  Facts own = data_check_.facts();  // first: samples that differ follow from files that do
  for (auto& fact : facts()) own.push_back(std::move(fact));
  own.emplace_back("fewest workers", std::to_string(s_.cluster.options().least));
  s_.cluster.introduce(to_text(own));
}

// Collective. Files that were still being read when the workers began.
void FitLoop::compare_data() {
  comm::Group* const group = s_.cluster.group();
  if (!group || s_.alone || !data_check_.pending()) return;
  if (const auto files = data_check_.disputed(*group)) check_agreement(*group, *files);
  if (!data_check_.pending() && s_.cluster.elastic()) introduce();
}

bool FitLoop::accepts_newcomers() {
  return data_check_.knows() && s_.cluster.accepts_newcomers(most_workers());
}

// Between two steps: this worker leaves if it was asked to, and newcomers are let in. Returns
// whether it has left.
bool FitLoop::change_members() {
  if (!s_.cluster.elastic() || !result_.stopped_by.empty()) return false;
  if (!s_.in_step && !s_.alone && !mirrors_.at_work() && !strategy_->has_met()) return false;
  if (s_.leave || s_.cluster.dismissed()) {
    if (s_.cluster.size() == 1) {
      s_.stop = true;
    } else if (others_may_leave_first()) {
      // All may have been asked to: the last one saves and reports.
    } else if (!mirrors_.at_work() || mirrors_.arrived(s_.step)) {  // nobody needs its part now
      finish_saving();
      if (std::exchange(leads_, false) && options_.after_leading) options_.after_leading();
      s_.cluster.leave();
      result_.stopped_by = "leave";
      return true;
    }
  }
  if (s_.cluster.too_few() && !s_.alone) {
    save(false);
    s_.cluster.wait_for_newcomers(most_workers(), [this] { return s_.stop || s_.leave; });
  }
  if (std::exchange(newcomers_, false)) s_.cluster.receive_newcomers();
  if (!tells_newcomers() && accepts_newcomers()) s_.cluster.invite();
  return false;
}

// Worker 0 leaves a few steps and a moment after it was asked to.
bool FitLoop::others_may_leave_first() {
  constexpr int64_t kSteps = 2;
  constexpr double kSeconds = 0.5;
  if (s_.cluster.rank() != 0) return false;
  if (!asked_to_leave_) asked_to_leave_ = {s_.step, Clock::now()};
  return s_.step < asked_to_leave_->first + kSteps ||
         seconds_between(asked_to_leave_->second, Clock::now()) < kSeconds;
}

// A worker that was started again and has died before it could finish a step would do so for ever.
// `progressed`: a step was finished with it, and may have to be made again.
void FitLoop::check_losses(bool progressed) {
  for (const auto& [worker, why] : std::exchange(lost_, {})) {
    require(worker.after_step != s_.step || why != "ended" || progressed, ErrorKind::cancelled,
            "{} (process {} on host {}) ended in step {}, as did the one before it: the run stops",
            name_of(worker), worker.process, worker.host, s_.step + 1);
    if (worker.place >= 0 && why != "left") s_.cluster.note_loss(worker.place, s_.step);
  }
}

// Worker 0 writes and reports.
void FitLoop::lead() {
  if (s_.cluster.rank() != 0) {
    if (std::exchange(leads_, false) && options_.after_leading) options_.after_leading();
    unsaved_.reset();  // others save now
    return;
  }
  if (!std::exchange(leads_, true) && options_.before_leading)
    options_.before_leading(s_.step, checkpoints_);
  if (options_.before_membership) options_.before_membership(s_.cluster.membership());
}

// What the others say of this worker if it falls silent.
void FitLoop::set_phase(std::string_view what, int64_t step) {
  phase_began_ = Clock::now();
  if (!s_.cluster.group()) return;
  const std::string mesh = strategy_ ? to_string(strategy_->coordinates()) : "";
  s_.cluster.group()->set_phase(
      fmt::format("{} {}{}{}", what, step, mesh.empty() ? "" : ", ", mesh));
}

void FitLoop::train() {
  lead();
  const bool rejoined = std::exchange(rejoined_, false);
  if (s_.step % per_epoch_ == 0 && s_.epoch.samples > 0) {
    // Stopped by request with the last step of an epoch, or broken off then: its end is still due.
    now_.epoch = s_.step / per_epoch_;
    saved_ = -1;
    end_epoch();
  } else if (rejoined && s_.step > 0 && is_saved(s_.step)) {
    save(best_ == s_.step);  // whoever was to do so may have died over it
  }
  if (result_.stopped_by.empty() && s_.step >= now_.steps)
    result_.stopped_by = options_.steps > 0 ? "steps" : "epochs";
  mirror();
  if (change_members()) return;
  while (result_.stopped_by.empty()) {
    follow_trace();
    if (!next_step()) break;
    join_if_changed();
    strategy_->after_step(s_.step);
    if (result_.stopped_by.empty()) set_strategy(strategy_->successor());
    if (s_.step % per_epoch_ == 0 && !leaves_epoch_open()) {
      end_epoch();
    } else if (options_.save_every > 0 && s_.step % options_.save_every == 0) {
      save(false);
    }
    mirror();
    if (change_members()) return;
  }
  if (traces()) end_trace();
  finish_saving();
  const bool changed = strategy_->finish();
  if (changed) saved_ = -1;  // what was saved at this step lacks contributions of others
  if (s_.cluster.rank() == 0) result_.servers = strategy_->server_report();
  bool best = false;
  if (ends_within_epoch()) {
    judge();
    best = now_.tested && improves_best();
    report();
  } else if (changed && validation_ && !result_.epochs.empty()) {
    test();
    result_.epochs.back().test_loss = now_.test_loss;
    result_.epochs.back().test_accuracy = now_.test_accuracy;
    result_.epochs.back().test_metrics = now_.test_metrics;
    result_.epochs.back().test_mistakes = now_.test_mistakes;
  }
  save(best);
  finish_saving();
  mirrors_.wait();
  if (averages() && options_.whole)
    strategy_->with_averages([this] { result_.averaged = tensors_of(s_.parameters.sources()); });
  result_.last = now_;
  if (const StrategyState kept = strategy_->state(); kept.values.contains("links"))
    result_.links = kept.values.at("links");
  result_.best = s_.best;
  if (options_.timeline) result_.timeline = timeline_.stop(s_.cluster.group());
  // If worker 0 fails here, elastic workers regroup, and another one saves.
  if (!s_.cluster.elastic()) gather_traffic();
  if (unsaved_)
    fail(unsaved_->kind(), "[step {}] the last state was not saved: {}", s_.step, unsaved_->what());
  if (s_.cluster.elastic()) gather_traffic();
  strategy_->leave();
}

// All workers learn who has requested the stop, and how long the others have waited.
void FitLoop::compare_endings() {
  result_.checkpoints = checkpoints_;
  comm::Group* const group = s_.cluster.group();
  if (!group || s_.alone || !strategy_->collective()) return;
  struct Ending {
    int32_t stops, signal;
    double waited;
  };
  const Ending own = {s_.stop && asked_to_stop_ ? 1 : 0, s_.stop_signal, now_.seconds_exchanging};
  std::vector<Ending> all(static_cast<size_t>(group->size()));
  group->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                    {.label = "ends"});
  std::vector<int> ranks;
  for (int rank = 0; rank < group->size(); ++rank) {
    if (all[rank].stops != 0) ranks.push_back(rank);
    if (asked_to_stop_) result_.stop_signal = std::max(result_.stop_signal, all[rank].signal);
  }
  if (!ranks.empty() && ranks.size() < all.size())
    result_.stopped_at = worker_names_of(*group, ranks);
  // In a mesh, workers also wait for other stages.
  if (to_string(strategy_->coordinates()).empty())
    result_.seconds_for_wire = std::ranges::min(all, {}, &Ending::waited).waited;
}

TrainingState FitLoop::step_on(const Tensor& x, const Tensor& y,
                               std::optional<double> learning_rate) {
  std::optional<int64_t> number;
  with_whoever_is_left([&] {
    if (number && s_.step >= *number) return;  // another worker had finished it
    number = s_.step + 1;
    given_rate_ = learning_rate;
    const auto epoch = s_.epoch;  // belongs to `fit`, not to the rows given here
    const data::LoaderState position = s_.position;
    step(workload_->part_of(x, y));
    s_.epoch = epoch;
    s_.position = position;
    strategy_->after_step(s_.step);
    mirror();
  });
  return now_;
}

void FitLoop::settle() {
  if (s_.generation != s_.cluster.membership().generation) return;
  strategy_->settle(s_.step, {.ends = true});
  gathered_ = options_.whole;
  s_.set_strategy(nullptr);
  strategy_.reset();  // another loop may use the stepper now
}

void FitLoop::join_if_changed() {
  if (!strategy_ || s_.generation != s_.cluster.membership().generation) join();
}

// A fit that is stopped by request ends at once; what is due at the end of an epoch is done when it
// is resumed. Each of several workers has its own reason to stop, or none that it knows of, so what
// they do together must not depend on the reason.
bool FitLoop::leaves_epoch_open() const {
  if (s_.cluster.size() == 1 || !strategy_->collective()) return result_.stopped_by == "request";
  return asked_to_stop_;
}

// Whether the step is followed by a checkpoint in a fit that goes on, too.
bool FitLoop::is_saved(int64_t step) const {
  return step % per_epoch_ == 0 || (options_.save_every > 0 && step % options_.save_every == 0);
}

// A run by steps is judged at its end, wherever in an epoch that is; but once only.
bool FitLoop::ends_within_epoch() const {
  return options_.steps > 0 && result_.stopped_by == "steps" && s_.epoch.samples > 0 &&
         now_.samples > 0;
}

// Returns whether there was a batch for it.
bool FitLoop::next_step() {
  const Timeline::Scope scope(&timeline_, "step", Timeline::kMain,
                              [&] { return fmt::format("step {}", s_.step + 1); });
  set_phase("data of step", s_.step + 1);
  const std::optional<data::Batch> batch = next_batch();
  if (batch)
    step(*batch);
  else
    result_.stopped_by = "epochs";
  return batch.has_value();
}

std::optional<data::Batch> FitLoop::next_batch() {
  const Timeline::Scope scope(&timeline_, "wait", Timeline::kMain, "data");
  return workload_->next();
}

// With a null pointer, the strategy stays as it is.
void FitLoop::set_strategy(std::unique_ptr<Strategy> strategy) {
  if (!strategy) return;
  finish_saving();
  s_.set_strategy(strategy.get());
  strategy_ = std::move(strategy);
  s_.alone = !strategy_->collective();
  s_.in_step = strategy_->in_step();
  tell_path();
}

// At worker 0, when it changes: how sums are added, and what the bits of the result depend on.
void FitLoop::tell_path() {
  const ExchangePath path = s_.cluster.size() > 1 ? strategy_->path() : ExchangePath();
  if (std::exchange(now_.exchange, path) == path || path.algorithm.empty() ||
      s_.cluster.rank() != 0)
    return;
  log(LogLevel::info, "{}, {}: {}{}", counted(s_.cluster.size(), "worker"),
      counted(s_.lanes, "lane"), to_string(path),
      path.reduction == "exact"  ? "; any number of workers gives the same bits"
      : path.reduction == "fast" ? "; another number of workers gives other bits"
                                 : "");
}

// Where each worker keeps only a part of the state, it is copied to another one now and then.
void FitLoop::mirror() {
  if (result_.stopped_by.empty() && mirrors_.due(s_.step)) mirrors_.start(s_.step, s_.state_text());
}

void FitLoop::step(const data::Batch& batch) {
  const int64_t number = s_.step + 1;
  set_phase("step", number);
  now_.epoch = batch.epoch + 1;
  now_.learning_rate =
      given_rate_ ? *given_rate_ : schedule_->at(number) * (plateau_ ? plateau_->factor() : 1);
  if (!strategy_->computes_first()) finish_saving();
  // Whoever gets the state in this step has no use for being disturbed.
  s_.newcomers = tells_newcomers() && !arrival_ && accepts_newcomers();
  Strategy::Outcome outcome =
      strategy_->step(batch, {.number = number,
                              .update = number + s_.extra_updates,
                              .learning_rate = static_cast<float>(now_.learning_rate)});
  // Nothing that is kept has changed before this line; from here on the step is finished.
  s_.step = now_.step = number;
  mirrors_.confirm(number);
  s_.position = loader_.state();
  if (arrival_) welcome();
  if (!outcome.together) outcome.together = strategy_->meet(number);
  count(outcome);
  account(outcome, batch);
}

// Of the epoch so far.
std::optional<double> FitLoop::noise_scale() const {
  const GradientNoise& sums = s_.epoch.noise;
  if (!(sums.square > 0)) return {};
  return sums.variance / sums.square;
}

// The sums of the epoch.
void FitLoop::count(const Strategy::Outcome& outcome) {
  if (outcome.noise) {
    s_.epoch.noise.variance += outcome.noise->variance;
    s_.epoch.noise.square += outcome.noise->square;
  }
  if (!outcome.together) return;
  s_.epoch.samples += outcome.together->samples;
  s_.epoch.loss += outcome.together->loss;
  s_.epoch.weight +=
      outcome.together->weight.value_or(static_cast<double>(outcome.together->samples));
  const std::vector<double>& sums = outcome.together->metrics;
  s_.epoch.metrics.resize(sums.size());
  for (size_t i = 0; i < sums.size(); ++i) s_.epoch.metrics[i] += sums[i];
}

void FitLoop::account(const Strategy::Outcome& outcome, const data::Batch& batch) {
  if (outcome.seen) {
    now_.loss = outcome.loss;
    set_metrics(outcome.metrics);
  }
  if (outcome.learning_rate) now_.learning_rate = *outcome.learning_rate;
  now_.samples += batch.total;
  last_step_ = {static_cast<double>(s_.step), static_cast<double>(now_.epoch), now_.loss,
                now_.learning_rate, static_cast<double>(batch.total)};
  last_step_.insert(last_step_.end(), outcome.metrics.begin(), outcome.metrics.end());
  now_.seconds = seconds_between(begin_, Clock::now());
  now_.seconds_waited = loader_.seconds_waited();
  const Strategy::Traffic waits = strategy_->traffic();
  now_.seconds_exchanging = waits_before_.waited_seconds + waits.waited_seconds;
  now_.seconds_on_wire = waits_before_.wire_seconds + waits.wire_seconds;
  read_traffic();
  now_.own_samples += batch.size();
  const Division* const division = workload_->division();
  now_.own_lanes = division ? division->own().size() : 0;
  now_.lanes = division ? s_.lanes : 0;
  now_.workers = s_.cluster.size();
  now_.mesh = strategy_->coordinates();
  now_.measures = outcome.measures;
  Stepper* const stepper = workload_->stepper();
  now_.gradient_norm = stepper ? stepper->update().take_norm() : std::nullopt;
  now_.noise = outcome.noise;
  now_.noise_scale = outcome.noise ? noise_scale() : std::nullopt;
  now_.left = now_.joined = 0;
  now_.repeated = 0;
  now_.seconds_lost = 0;
  const bool repeated = s_.step <= told_;  // its part of the state was lost
  if (!repeated && !result_.changes.empty() && result_.changes.back().until_next_step == 0) {
    ChangedWorkers& change = result_.changes.back();
    change.until_next_step = seconds_between(broken_at_, Clock::now());
    now_.seconds_lost = seconds_between(interrupted_.value_or(broken_at_), phase_began_);
    now_.left = static_cast<int>(change.gone.size());
    now_.joined = static_cast<int>(change.came.size());
    now_.repeated = change.repeated;
  }
  bool go_on = true;
  if (!repeated) {
    interrupted_.reset();
    told_ = s_.step;
    for (const Callback& callback : options_.after_step) go_on = callback(now_) && go_on;
  }
  const bool time_is_up = options_.max_seconds > 0 && now_.seconds >= options_.max_seconds;
  if (!go_on || time_is_up) s_.stop = true;
  if (reason_.empty()) reason_ = !go_on ? "callback" : time_is_up ? "time" : outcome.stops_by;
  if (!outcome.together) return;
  trace_due_ = outcome.together->trace;
  newcomers_ = outcome.together->newcomers;
  const bool stops = strategy_->stops(outcome, s_.stop);
  asked_to_stop_ = stops && s_.step < now_.steps;
  if (stops) result_.stopped_by = reason_.empty() ? "request" : reason_;
  if (s_.step >= now_.steps) result_.stopped_by = options_.steps > 0 ? "steps" : "epochs";
}

// The counters of this worker since the fit began.
void FitLoop::read_traffic() {
  const Membership& now = s_.cluster.membership();
  traffic_ = traffic_before_;
  if (const comm::Group* const group = now.world ? now.world.get() : now.group.get()) {
    traffic_.all += group->traffic();
    traffic_.between_hosts += group->traffic_between_hosts();
  }
  const auto rank = static_cast<size_t>(s_.cluster.rank());
  traffic_.worker = rank < now.members.size() ? now.members[rank].number : s_.cluster.rank();
  now_.sent_bytes = traffic_.all.sent_bytes;
  now_.received_bytes = traffic_.all.received_bytes;
}

// Collective, and the last thing that workers do together: none of them leaves before the last
// checkpoint is written, because its writer may die. A worker that trains alone may have to wait
// for as long as the others train.
void FitLoop::gather_traffic() {
  constexpr double kYear = 365 * 86400.0;
  compare_endings();
  comm::Group* const group = s_.cluster.group();
  if (!group || !(s_.cluster.elastic() || strategy_->collective())) return;
  read_traffic();
  result_.last.sent_bytes = now_.sent_bytes;
  result_.last.received_bytes = now_.received_bytes;
  std::vector<WorkerTraffic> all(static_cast<size_t>(group->size()));
  group->all_gather(
      std::as_bytes(std::span(&traffic_, 1)), std::as_writable_bytes(std::span(all)), {},
      {.label = s_.alone ? "end of the others" : "end", .timeout = s_.alone ? kYear : 0});
  result_.traffic = std::move(all);
}

void FitLoop::set_metrics(std::span<const double> sums) {
  now_.metrics = metrics_.values(sums);
  now_.accuracy = accuracy_of(now_.metrics);
}

// Whether averaged weights are what the fit is about, and what tests judge.
bool FitLoop::averages() const {
  return s_.options.optimizer.average > 0 && workload_->stepper() != nullptr;
}

void FitLoop::test() {
  constexpr int64_t kTestBatch = 256;
  set_phase("test after step", s_.step);
  if (Stepper* const stepper = workload_->stepper()) stepper->rest();  // the test needs memory
  strategy_->before_test();
  Evaluation test;
  const auto evaluate = [&] {
    test = trainer_.evaluate(validation_, options_.augment.for_testing(), kTestBatch,
                             options_.while_testing, options_.mistakes);
  };
  now_.averaged = averages();
  if (now_.averaged) {
    finish_saving();
    strategy_->with_averages(evaluate);
  } else {
    evaluate();
  }
  now_.tested = true;
  now_.test_loss = test.loss;
  now_.test_accuracy = test.accuracy;
  now_.test_metrics = test.metrics;
  now_.test_mistakes = std::move(test.mistakes);
}

// The means of the epoch so far, and a test of the network as it is. Returns the loss to watch.
double FitLoop::judge() {
  require(
      s_.epoch.weight > 0 || s_.epoch.samples == 0, ErrorKind::numeric,
      "[epoch {}] none of {} samples has a label that counts: all are ignored ({}) or of classes "
      "with the weight 0; check the labels and train.class_weights",
      now_.epoch, s_.epoch.samples, data::kIgnoredTarget);
  now_.loss = s_.epoch.loss / s_.epoch.weight;
  s_.epoch.metrics.resize(metrics_.sums());  // empty if nothing has been counted yet
  set_metrics(s_.epoch.metrics);
  now_.gradient_norm.reset();
  now_.noise.reset();
  now_.noise_scale = noise_scale();
  now_.tested = false;
  if (!validation_ || !strategy_->rests_after(s_.step) ||
      (!strategy_->collective() && s_.cluster.rank() > 0))
    return now_.loss;
  test();
  return now_.test_loss;
}

// Returns whether all callbacks want to go on.
bool FitLoop::report() {
  now_.seconds = seconds_between(begin_, Clock::now());
  // Weights that lie in parts are gathered for tests and for whoever wants them whole.
  now_.has_weights =
      strategy_->rests_after(s_.step) && (!divides_ || validation_ != nullptr || options_.whole);
  // Once, even if the group broke before all had finished it.
  if (!result_.epochs.empty() && result_.epochs.back().step >= now_.step) return true;
  result_.epochs.push_back(now_);
  bool go_on = true;
  for (const Callback& callback : options_.after_epoch) go_on = callback(now_) && go_on;
  return go_on;
}

// Ends the fit or, where workers have to stop together, asks for that.
void FitLoop::want_to_stop(const std::string& reason) {
  if (!strategy_->stops_together()) {
    result_.stopped_by = reason;
    return;
  }
  s_.stop = true;
  if (reason_.empty()) reason_ = reason;
}

// What `best_by` names, of an epoch.
double FitLoop::watched() const {
  if (options_.best_by == "loss") return now_.tested ? now_.test_loss : now_.loss;
  const MetricValue* const metric =
      find_metric(now_.tested ? now_.test_metrics : now_.metrics, options_.best_by);
  return metric ? metric->value : std::numeric_limits<double>::quiet_NaN();
}

// Records the state as the best so far, if it is, and returns whether it is.
bool FitLoop::improves_best() {
  if (s_.best && s_.best->by != options_.best_by) s_.best.reset();  // a resumed run chooses anew
  const double value = watched();
  const bool best =
      std::isfinite(value) &&
      (!s_.best || (less_is_better_ ? value < s_.best->value : value > s_.best->value));
  if (best) s_.best = {options_.best_by, value, now_.epoch, s_.step};
  return best;
}

// Applies the stopping criteria to an epoch with this loss. Returns whether it is the best so far.
bool FitLoop::watch(double loss) {
  if (validation_ && options_.target_accuracy > 0 && now_.test_accuracy >= options_.target_accuracy)
    want_to_stop("target accuracy");
  const bool best = improves_best();
  s_.bad_epochs = best ? 0 : s_.bad_epochs + 1;
  if (options_.patience > 0 && s_.bad_epochs >= options_.patience) want_to_stop("patience");
  if (plateau_) {
    const bool maximize = std::get<optim::Plateau>(s_.options.schedule.shape).maximize;
    plateau_->observe(!maximize ? loss : now_.tested ? now_.test_accuracy : now_.accuracy);
    s_.plateau = plateau_->state();
  }
  return best;
}

void FitLoop::end_epoch() {
  const double watched = judge();
  s_.epoch = {};
  const bool rests = strategy_->rests_after(s_.step);
  const bool best = rests && watch(watched);
  if (!report()) {
    s_.stop = true;
    if (s_.cluster.size() == 1 || !strategy_->collective()) want_to_stop("callback");
  }
  join_if_changed();
  if (rests) save(best);
}

// The state is written while the next step computes. That step waits for it before it hands on its
// last sums: so no worker finishes it, and nobody's state changes, before the checkpoint is there.
// Worker 0 writes; where state is divided, the others give it their parts meanwhile.
void FitLoop::save(bool best) {
  finish_saving();
  compare_data();
  if (best) best_ = s_.step;
  strategy_->settle(s_.step, {.regular = is_saved(s_.step), .ends = !result_.stopped_by.empty()});
  gathered_ = options_.whole && !result_.stopped_by.empty();
  if (checkpoints_.empty()) return;
  DividedState* const divided = strategy_->divided();
  if (s_.cluster.rank() != 0) {
    if (divided) saving_ = std::async(std::launch::async, [divided] { divided->serve(); });
    if (keeps_copy_) copy_checkpoint(best);
    return;
  }
  if (begins_saving(best)) {
    saving_ = std::async(std::launch::async, [this, best, divided, snapshot = s_.snapshot()] {
      write_checkpoint(snapshot, best, divided);
    });
  } else if (divided) {
    divided->release();
  }
}

// A copy is worth a warning, not the run.
void FitLoop::copy_checkpoint(bool best) {
  if ((saved_ == s_.step && !best) || !strategy_->has_state()) return;
  saving_ = std::async(std::launch::async, [this, best, snapshot = s_.snapshot()] {
    try {
      write_checkpoint(snapshot, best, nullptr);
    } catch (const Error& error) {
      log(LogLevel::warning, "this copy of the checkpoint was not saved: {}", error.what());
    }
  });
}

// At worker 0: whether the present state is to be saved.
bool FitLoop::begins_saving(bool best) {
  if ((saved_ == s_.step && !best) || !strategy_->has_state()) return false;
  set_phase("checkpoint", s_.step);
  strategy_->fetch();
  unsaved_.reset();
  try {
    if (options_.before_save) options_.before_save();
  } catch (const Error& error) {
    not_saved(error);
    return false;
  }
  return true;
}

// On a thread of its own.
void FitLoop::write_checkpoint(checkpoint::Snapshot snapshot, bool best,
                               DividedState* divided) const {
  const auto release = [](DividedState* state) { state->release(); };
  const std::unique_ptr<DividedState, decltype(release)> in_use(divided, release);
  if (divided) {
    divided->complete(snapshot.weights);
    divided->complete(snapshot.optimizer);
  }
  check_weights(s_.parameters, snapshot.weights);
  for (TensorSource& tensor : sources_of(options_.around))
    snapshot.weights.push_back(std::move(tensor));
  checkpoint::save_checkpoint(checkpoints_, snapshot,
                              {.keep_last = options_.keep_last, .best = best});
}

void FitLoop::finish_saving() {
  if (!saving_.valid()) return;
  try {
    saving_.get();
    saved_ = s_.step;
  } catch (const Error& error) {
    not_saved(error);
  }
}

// While it is being handled: an error that is no reason to end the run is kept, and told.
void FitLoop::not_saved(const Error& error) {
  if (error.kind() == ErrorKind::io)
    unsaved_.emplace(error.kind(),
                     fmt::format("{} ({})", error.what(), free_space_at(checkpoints_)));
  else if (error.kind() == ErrorKind::not_found || error.kind() == ErrorKind::numeric)
    unsaved_ = error;
  else
    throw;
  if (result_.stopped_by.empty())
    log(LogLevel::warning, "step {} was not saved: {}; the next checkpoint is tried again", s_.step,
        unsaved_->what());
}

}  // namespace artel
