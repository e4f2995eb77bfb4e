#include "artel/train/loop/fit_loop.h"

#include <algorithm>

#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/process.h"
#include "artel/comm/collectives/balance.h"
#include "artel/train/loop/epoch_sums.h"
#include "artel/train/strategies/shared_options.h"

namespace artel {
FitLoop::FitLoop(Trainer& trainer, TrainerState& state, data::DatasetPtr train,
                 const FitOptions& options)
    : trainer_(trainer),
      s_(state),
      options_(options),
      kind_(find_strategy(s_.options.strategy, s_.cluster.servers())),
      asked_(s_.options.strategy_options),
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
      tracer_(state, options),
      introduction_(state, options, asked_, loader_.set()),
      parts_(state, asked_.of<MirrorOptions>().mirror_every),
      newcomers_(state, introduction_),
      departures_(state, parts_),
      interruptions_(state),
      saver_(state, options, result_),
      readers_(state, saver_, parts_, newcomers_) {
  taken_ = static_cast<double>(private_memory_bytes());
  s_.build(input_type(loader_.layout()));
  resume();
  s_.choose_lanes(options.batch_size);
  const bool by_steps = options.epochs <= 0 || options.epochs > INT64_MAX / per_epoch_;
  const int64_t by_epochs = by_steps ? INT64_MAX : options.epochs * per_epoch_;
  now_.steps = options.steps > 0 ? std::min(options.steps, by_epochs) : by_epochs;
  now_.steps_per_epoch = per_epoch_;
  now_.epochs = now_.steps / per_epoch_ + (now_.steps % per_epoch_ > 0 ? 1 : 0);
  enter();
  traffic_.emplace(s_.cluster);
  with_remaining_workers([] {});
  schedule_.emplace(s_.options.schedule, s_.options.optimizer.learning_rate,
                    optim::Horizon{.total_steps = now_.steps,
                                   .steps_per_epoch = per_epoch_,
                                   .batch_size = options.batch_size});
  judge_.emplace(s_, options_, metrics_, loader_.layout());
  if (options.noise_every > 0 && s_.lanes == 1 && s_.cluster.rank() == 0)
    log(LogLevel::warning,
        "train.noise_every has no effect with one lane: it measures the differences between lanes; "
        "try cluster.lanes = 8");
}

FitLoop::~FitLoop() {
  s_.set_strategy(nullptr);
  s_.options.strategy_options = asked_;
  s_.in_parts = s_.in_parts || (divides_ && !gathered_);
}

FitResult FitLoop::run() {
  with_remaining_workers([this] { train(); });
  return std::move(result_);
}

// The only place that catches a broken group. The remaining members form another group, share the
// most advanced state, and continue from there.
void FitLoop::with_remaining_workers(const std::function<void()>& body) {
  while (true) try {
      join_if_changed();
      return body();
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::communication) throw;
      regroup(error);
    }
}

void FitLoop::regroup(const Error& cause) {
  if (strategy_ && !strategy_->traits().survives_losses) throw cause;
  interruptions_.begin();
  traffic_->read();
  try {
    saver_.finish();
  } catch (const Error& error) {
    // A checkpoint that needs parts from other workers fails with the group.
    if (error.kind() != ErrorKind::communication) throw;
  }
  const bool lacks_state = newcomers_.receives(s_.cluster.rank());
  const MembershipChange change = interruptions_.regroup(cause);
  const int64_t step = s_.step;
  newcomers_.give_up();
  if (lacks_state) s_.step = -1;
  if (change.rejoined || lacks_state) {
    // This worker's state is not, or not yet, the state of the run.
    s_.generation = -1;
    saver_.mark_unsaved();
    last_reported_step_ = -1;
    parts_.forget();
  }
  // Workers that are behind do not know why the others stopped, so all agree on it again.
  s_.stop = s_.stop || asked_to_stop_;
  asked_to_stop_ = false;
  result_.stopped_by.clear();
  if (change.gone.empty() && change.came.empty()) return;
  ChangedWorkers changed = {.gone = change.gone,
                            .came = change.came,
                            .staying = {},
                            .step = step,
                            .at = seconds_between(begin_, interruptions_.began()),
                            .seconds = change.seconds};
  for (const auto& member : s_.cluster.membership().members)
    changed.staying.push_back(member.number);
  result_.changes.push_back(std::move(changed));
}

// A newcomer prepares everything before it asks to join, so that the others only wait for the
// transfer of the state.
void FitLoop::enter() {
  // Newcomers are compared before they join, and workers with servers have no common steps.
  if (s_.cluster.outside() || s_.cluster.servers() > 0) introduction_.wait_for_files();
  if (!s_.cluster.elastic()) return;
  const auto& members = s_.cluster.membership().members;
  if (s_.generation < 0 && !members.empty()) first_worker_ = members.front();
  introduction_.publish();
  if (!s_.cluster.outside()) return;
  make_workload()->compile();
  s_.cluster.enter();
  interruptions_.rejoin();
}

// Between two steps: leaves if requested, and accepts newcomers. The run stops if all want to
// leave. Returns true if this worker has left.
bool FitLoop::change_members() {
  if (!s_.cluster.elastic() || !result_.stopped_by.empty()) return false;
  const std::vector<int> leaving = departures_.leavers();
  if (leaving.size() == static_cast<size_t>(s_.cluster.size())) {
    s_.stop = true;
    if (s_.alone) return false;  // after the next step, with which its server learns of it
    asked_to_stop_ = true;
    result_.stopped_by = "request";
    return false;
  }
  if (!s_.in_step && !s_.alone && !parts_.mirrors().at_work() && !strategy_->traits().has_met)
    return false;
  if (departures_.may_leave(leaving)) {
    parts_.mirrors().wait();
    saver_.finish();
    if (std::exchange(leads_, false) && options_.after_leading) options_.after_leading();
    s_.cluster.leave();
    result_.stopped_by = "leave";
    return true;
  }
  if (s_.cluster.too_few() && !s_.alone) {
    save(false);
    s_.cluster.wait_for_newcomers(newcomers_.most_workers(),
                                  [this] { return s_.stop || s_.leave; });
  }
  newcomers_.admit();
  return false;
}

// Worker 0 writes and reports.
void FitLoop::lead() {
  if (s_.cluster.rank() != 0) {
    if (std::exchange(leads_, false) && options_.after_leading) options_.after_leading();
    saver_.forget_error();  // other workers save now
    if (options_.before_following) options_.before_following(saver_.folder());
    return;
  }
  if (!std::exchange(leads_, true) && options_.before_leading)
    options_.before_leading(s_.step, saver_.folder(), saver_.identity());
  if (options_.before_membership) options_.before_membership(s_.cluster.membership());
}

// Sets the phase that other workers report if this one falls silent.
void FitLoop::set_phase(std::string_view what, int64_t step) {
  interruptions_.begin_phase();
  if (!s_.cluster.group()) return;
  const std::string mesh = strategy_ ? to_string(strategy_->traits().coordinates) : "";
  s_.cluster.group()->set_phase(
      fmt::format("{} {}{}{}", what, step, mesh.empty() ? "" : ", ", mesh));
}

void FitLoop::train() {
  lead();
  const bool rejoined = interruptions_.take_rejoined();
  if (s_.step % per_epoch_ == 0 && s_.epoch.samples > 0) {
    // Stopped by request or interrupted at the last step of an epoch. Its end is still due.
    now_.epoch = s_.step / per_epoch_;
    saver_.mark_unsaved();
    end_epoch();
  } else if (rejoined && s_.step > 0 && is_saved(s_.step)) {
    save(saver_.is_best());  // the previous worker 0 may have died while saving
  }
  if (result_.stopped_by.empty() && s_.step >= now_.steps)
    result_.stopped_by = options_.steps > 0 ? "steps" : "epochs";
  mirror();
  if (change_members()) return;
  while (result_.stopped_by.empty()) {
    tracer_.follow(*workload_);
    if (!next_step()) break;
    join_if_changed();
    strategy_->after_step(s_.step);
    if (result_.stopped_by.empty()) set_strategy(strategy_->successor());
    if (compares_files()) introduction_.compare_files();
    if (s_.step % per_epoch_ == 0 && !leaves_epoch_open()) {
      end_epoch();
    } else if (options_.save_every > 0 && s_.step % options_.save_every == 0) {
      save(false);
    }
    watch_speeds();
    mirror();
    if (change_members()) return;
  }
  finish();
}

TrainingState FitLoop::step_on(const Tensor& x, const Tensor& y,
                               std::optional<double> learning_rate) {
  std::optional<int64_t> number;
  with_remaining_workers([&] {
    if (number && s_.step >= *number) return;  // another worker finished it
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
  gathered_ = options_.gather_network;
  s_.set_strategy(nullptr);
  strategy_.reset();  // another loop may use the stepper
}

void FitLoop::join_if_changed() {
  if (!strategy_ || s_.generation != s_.cluster.membership().generation) join();
}

// The comparison is a message of a few bytes, and only needed while some worker reads its files.
bool FitLoop::compares_files() const {
  constexpr int64_t kSteps = 4;
  return meets_ && (!s_.in_step || s_.step % kSteps == 0);
}

// Returns false if no batch was left.
bool FitLoop::next_step() {
  const Timeline::Scope scope(&tracer_.timeline(), "step", Timeline::kMain,
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
  const Timeline::Scope scope(&tracer_.timeline(), "wait", Timeline::kMain, "data");
  return workload_->next();
}

// On worker 0: logs changes in how sums are added and what the result's bits depend on.
void FitLoop::log_exchange_path() {
  const ExchangePath path = s_.cluster.size() > 1 ? strategy_->path() : ExchangePath();
  if (std::exchange(now_.exchange, path) == path || path.algorithm.empty() ||
      s_.cluster.rank() != 0)
    return;
  log(LogLevel::info, "{}, {}: {}{}", counted(s_.cluster.size(), "worker"),
      counted(s_.lanes, "lane"), to_string(path),
      path.reduction == "exact"  ? "; same bits with any number of workers"
      : path.reduction == "fast" ? "; bits depend on the number of workers"
                                 : "");
  if (path.reduction == "exact") log_divided_subtrees();
}

// On worker 0, for exact sums between machines: logs the price of lanes that form no whole
// subtrees, and a number of lanes that avoids it.
void FitLoop::log_divided_subtrees() {
  const LanePartition* const partition = workload_->lane_partition();
  comm::Group* const group = s_.cluster.group();
  if (!group || !partition || std::ssize(partition->layout().lanes_of_rank) != group->size() ||
      !partition->all_have_lanes())
    return;
  constexpr int kMostTimes = 4;
  const std::vector<int> machines = group->host_numbers();
  const int sums = comm::most_host_sums(partition->layout(), machines);
  const int machine_count = std::ranges::max(machines) + 1;
  const auto most = static_cast<int>(std::min<int64_t>(kMostTimes * s_.lanes, options_.batch_size));
  const int lanes =
      machine_count > 1 && sums > 1 ? comm::lanes_of_single_sums(s_.lanes, most, machines) : 0;
  if (lanes == 0) return;
  // A machine sends its partial sums and one total.
  log(LogLevel::info,
      "{}, {} lanes: a machine sends {} partial sums, because its lanes form no whole subtree; a "
      "new run with cluster.lanes = {} sends {:.0f} % less",
      counted(machine_count, "machine"), s_.lanes, sums, lanes, 100.0 * (sums - 1) / (sums + 1));
}

// Keeps the current strategy if the pointer is null.
void FitLoop::set_strategy(std::unique_ptr<Strategy> strategy) {
  if (!strategy) return;
  saver_.finish();
  s_.set_strategy(strategy.get());
  strategy_ = std::move(strategy);
  s_.alone = !strategy_->traits().collective;
  s_.in_step = strategy_->traits().in_step;
  require(s_.options.pruning.weights == 0 || s_.in_step, ErrorKind::unsupported,
          "prune.weights: workers that each keep a part of the network, or train apart, do not see "
          "all weights; leave out sharding, pipelines, tensor groups and local steps, or prune "
          "first (artel prune)");
  log_exchange_path();
}

// Where each worker keeps only a part of the state, copies it to another worker periodically.
void FitLoop::mirror() {
  Mirrors& mirrors = parts_.mirrors();
  if (result_.stopped_by.empty() && mirrors.due(s_.step)) mirrors.start(s_.step, s_.state_text());
}

// All workers set the same weights to zero, because they hold the same ones.
void FitLoop::prune() {
  if (!prunes_after(s_.options.pruning, s_.step, now_.steps)) return;
  saver_.finish();
  s_.prune(now_.steps);
}

void FitLoop::step(const data::Batch& batch) {
  const int64_t number = s_.step + 1;
  set_phase("step", number);
  now_.epoch = batch.epoch + 1;
  now_.learning_rate = given_rate_ ? *given_rate_ : schedule_->at(number) * judge_->rate_factor();
  if (!strategy_->traits().computes_first) saver_.finish();
  newcomers_.announce();
  departures_.announce();
  Strategy::Outcome outcome =
      strategy_->step(batch, {.number = number,
                              .update = number + s_.extra_updates,
                              .learning_rate = static_cast<float>(now_.learning_rate)});
  // Nothing persistent changes before this line. From here on the step is finished.
  s_.step = now_.step = number;
  prune();
  parts_.mirrors().confirm(number);
  s_.position = loader_.state();
  newcomers_.welcome(*workload_);
  if (outcome.meet) outcome.together = outcome.meet();
  add_to_epoch(s_, outcome);
  account(outcome, batch);
}

void FitLoop::account(const Strategy::Outcome& outcome, const data::Batch& batch) {
  if (outcome.seen) {
    now_.loss = outcome.loss;
    set_metrics(outcome.metrics);
  } else if (outcome.together) {  // no sample of the whole batch counts
    now_.loss = 0;
    now_.metrics.clear();
    now_.accuracy = 0;
  }
  if (outcome.learning_rate) now_.learning_rate = *outcome.learning_rate;
  now_.samples += batch.total;
  last_step_ = {static_cast<double>(s_.step), static_cast<double>(now_.epoch), now_.loss,
                now_.learning_rate, static_cast<double>(batch.total)};
  last_step_.insert(last_step_.end(), outcome.metrics.begin(), outcome.metrics.end());
  now_.seconds = seconds_between(begin_, Clock::now());
  now_.seconds_waited = loader_.seconds_waited();
  traffic_->read();
  traffic_->report(*strategy_, now_);
  now_.own_samples += batch.size();
  const LanePartition* const lane_partition = workload_->lane_partition();
  if (Device& device = *s_.choices.device; &device != &cpu()) {
    now_.device = device.name();
    now_.device_use = device.use();
  }
  now_.own_lanes = lane_partition ? lane_partition->own().size() : 0;
  now_.lanes = lane_partition ? s_.lanes : 0;
  now_.workers = s_.cluster.size();
  now_.mesh = strategy_->traits().coordinates;
  now_.measures = outcome.measures;
  Stepper* const stepper = workload_->stepper();
  now_.gradient_norm = stepper ? stepper->update().take_norm() : std::nullopt;
  now_.noise = outcome.noise;
  now_.noise_scale = outcome.noise ? noise_scale_of(s_.epoch.noise) : std::nullopt;
  now_.left = now_.joined = 0;
  now_.repeated = 0;
  now_.seconds_lost = 0;
  const bool repeated = s_.step <= last_reported_step_;  // the step's state was lost
  if (!repeated && !result_.changes.empty() && result_.changes.back().until_next_step == 0) {
    ChangedWorkers& change = result_.changes.back();
    change.until_next_step = seconds_between(interruptions_.began(), Clock::now());
    now_.seconds_lost = interruptions_.seconds_lost();
    now_.left = static_cast<int>(change.gone.size());
    now_.joined = static_cast<int>(change.came.size());
    now_.repeated = change.repeated;
  }
  bool go_on = true;
  if (!repeated) {
    interruptions_.end();
    last_reported_step_ = s_.step;
    for (const Callback& callback : options_.after_step) go_on = callback(now_) && go_on;
  }
  const bool time_is_up = options_.max_seconds > 0 && now_.seconds >= options_.max_seconds;
  if (!go_on || time_is_up) s_.stop = true;
  if (reason_.empty()) reason_ = !go_on ? "callback" : time_is_up ? "time" : outcome.stops_by;
  meets_ = outcome.together.has_value();
  if (!meets_) return;
  tracer_.announce(outcome.together->trace);
  newcomers_.expect(outcome.together->newcomers);
  departures_.expect(outcome.together->leaves);
  const bool stops = strategy_->stops(outcome, s_.stop);
  asked_to_stop_ = stops && s_.step < now_.steps;
  if (stops) result_.stopped_by = reason_.empty() ? "request" : reason_;
  if (s_.step >= now_.steps) result_.stopped_by = options_.steps > 0 ? "steps" : "epochs";
}

void FitLoop::set_metrics(std::span<const double> sums) {
  now_.metrics = metrics_.values(sums);
  now_.accuracy = accuracy_of(now_.metrics);
}

}  // namespace artel
