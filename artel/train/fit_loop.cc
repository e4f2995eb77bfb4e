#include "artel/train/fit_loop.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/train/exchange.h"

namespace artel {

FitLoop::FitLoop(Trainer& trainer, TrainerState& state, data::DatasetPtr train,
                 const FitOptions& options)
    : trainer_(trainer),
      s_(state),
      options_(options),
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
      timeline_(options.timeline ? std::make_unique<Timeline>(s_.cluster.group()) : nullptr) {
  if (s_.cluster.servers() == 0) check_options(exchange_options(s_.options));
  s_.build(input_type(loader_.layout()));
  begin_together();
  require(options.batch_size >= s_.lanes, ErrorKind::invalid_argument,
          "batch_size: got {}, expected at least one sample for each of the {} lanes",
          options.batch_size, s_.lanes);
  stepper_ = &s_.stepper_for(loader_.layout());
  compile(*stepper_);  // what does not fit a batch of any size is said before the first step
  const int64_t by_epochs = options.epochs > 0 ? options.epochs * per_epoch_ : INT64_MAX;
  now_.steps = options.steps > 0 ? std::min(options.steps, by_epochs) : by_epochs;
  now_.epochs = (now_.steps + per_epoch_ - 1) / per_epoch_;
  now_.step = s_.step;
  bool saves = !options.checkpoints.empty();
  if (comm::Group* const group = s_.cluster.group()) {
    share_state(*group);
    saves = !broadcast_text(*group, saves ? "yes" : "").empty();
  }
  loader_.seek(s_.position);
  division_.emplace(s_.cluster.group(), s_.lanes, loader_);
  set_strategy(make_strategy({.state = s_,
                              .stepper = *stepper_,
                              .division = *division_,
                              .timeline = timeline_.get(),
                              .batch_size = options.batch_size,
                              .steps_per_epoch = per_epoch_,
                              .last_step = now_.steps,
                              .save_every = options.save_every,
                              .saves = saves}));
  schedule_.emplace(s_.options.schedule, s_.options.optimizer.learning_rate,
                    optim::Horizon{.total_steps = now_.steps,
                                   .steps_per_epoch = per_epoch_,
                                   .batch_size = options.batch_size});
  if (const auto* plateau = std::get_if<optim::Plateau>(&s_.options.schedule.shape)) {
    require(!plateau->maximize || loader_.layout().classes > 0, ErrorKind::invalid_argument,
            "[schedule plateau] maximize: got true, but without classes there is no accuracy to "
            "watch; try false");
    plateau_.emplace(*plateau, s_.plateau);
  }
  if (options.timeline) record_kernels();
}

FitLoop::~FitLoop() {
  if (timeline_ && stepper_) stepper_->set_timing({});
}

FitResult FitLoop::run() {
  s_.stop = false;
  if (s_.step >= now_.steps) result_.stopped_by = "steps";
  // Stopped by request with the last step of an epoch, whose end is still due.
  if (result_.stopped_by.empty() && s_.step % per_epoch_ == 0 && s_.epoch.samples > 0) {
    now_.epoch = s_.step / per_epoch_;
    end_epoch();
  }
  while (result_.stopped_by.empty()) {
    std::optional<data::Batch> batch;
    {
      const Timeline::Scope scope(timeline_.get(), "wait", Timeline::kMain, "data");
      batch = loader_.next();
    }
    if (!batch) {
      result_.stopped_by = "epochs";
      break;
    }
    step(*batch);
    if (result_.stopped_by.empty()) set_strategy(strategy_->successor());
    if (s_.step % per_epoch_ == 0 && result_.stopped_by != "request") {
      end_epoch();
    } else if (options_.save_every > 0 && s_.step % options_.save_every == 0) {
      save(false);
    }
  }
  const bool changed = strategy_->finish();
  if (s_.cluster.rank() == 0) result_.servers = strategy_->server_report();
  if (ends_within_epoch()) {
    judge();
    report();
  } else if (changed && validation_ && !result_.epochs.empty()) {
    test();
    result_.epochs.back().test_loss = now_.test_loss;
    result_.epochs.back().test_accuracy = now_.test_accuracy;
  }
  save(false);
  strategy_->leave();
  result_.last = now_;
  if (timeline_) result_.timeline = timeline_->gather();
  return std::move(result_);
}

// A run by steps is judged at its end, wherever in an epoch that is.
bool FitLoop::ends_within_epoch() const {
  return options_.steps > 0 && result_.stopped_by == "steps" && s_.epoch.samples > 0;
}

// Every kernel becomes a span on the thread of its lane.
void FitLoop::record_kernels() {
  stepper_->set_timing([this](int lane, const StepTiming& timing) {
    const auto [begin, end] = Stepper::rows_of_lane(batch_, s_.lanes, lane);
    const Plan& plan = stepper_->program(end - begin).plan();
    const Clock::time_point now = Clock::now();
    timeline_->add("compute", Timeline::kFirstLane + lane, plan.steps[timing.step].op,
                   now - std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(timing.seconds)),
                   now);
  });
}

// Nothing: the strategy stays as it is.
void FitLoop::set_strategy(std::unique_ptr<Strategy> strategy) {
  if (!strategy) return;
  strategy_ = std::move(strategy);
  s_.alone = !strategy_->collective();
}

void FitLoop::step(const data::Batch& batch) {
  ++s_.step;
  now_.step = s_.step;
  now_.epoch = batch.epoch + 1;
  now_.learning_rate = schedule_->at(s_.step) * (plateau_ ? plateau_->factor() : 1);
  batch_ = batch.total;
  const Strategy::Outcome outcome = strategy_->step(
      batch, {.number = s_.step, .learning_rate = static_cast<float>(now_.learning_rate)});
  s_.position = loader_.state();
  account(outcome, batch);
}

void FitLoop::account(const Strategy::Outcome& outcome, const data::Batch& batch) {
  if (outcome.seen) {
    now_.loss = outcome.loss;
    now_.accuracy = outcome.accuracy;
  }
  now_.samples += batch.total;
  if (outcome.seen || strategy_->collective()) s_.epoch.samples += batch.total;
  now_.seconds = seconds_between(begin_, Clock::now());
  now_.seconds_waited = loader_.seconds_waited();
  const Strategy::Traffic traffic = strategy_->traffic();
  now_.seconds_exchanging = traffic.waited_seconds;
  now_.sent_bytes = traffic.sent_bytes;
  bool go_on = true;
  for (const Callback& callback : options_.after_step) go_on = callback(now_) && go_on;
  const bool time_is_up = options_.max_seconds > 0 && now_.seconds >= options_.max_seconds;
  if (!go_on || time_is_up) s_.stop = true;
  if (!outcome.together) return;
  s_.epoch.loss += outcome.together->loss;
  s_.epoch.correct += std::llround(outcome.together->correct);
  s_.epoch.labels += std::llround(outcome.together->labels);
  if (strategy_->stops(outcome, s_.stop))
    result_.stopped_by = !go_on ? "callback" : time_is_up ? "time" : "request";
  if (s_.step >= now_.steps) result_.stopped_by = options_.steps > 0 ? "steps" : "epochs";
}

void FitLoop::test() {
  const Evaluation test = trainer_.evaluate(validation_, options_.augment.for_testing());
  now_.tested = true;
  now_.test_loss = test.loss;
  now_.test_accuracy = test.accuracy;
}

// The means of the epoch so far, and a test of the network as it is. Returns the loss to watch.
double FitLoop::judge() {
  now_.loss = s_.epoch.loss / static_cast<double>(s_.epoch.samples);
  now_.accuracy = static_cast<double>(s_.epoch.correct) /
                  static_cast<double>(std::max<int64_t>(1, s_.epoch.labels));
  if (!validation_ || (!strategy_->collective() && s_.cluster.rank() > 0)) return now_.loss;
  test();
  return now_.test_loss;
}

// Returns whether all callbacks want to go on.
bool FitLoop::report() {
  now_.seconds = seconds_between(begin_, Clock::now());
  result_.epochs.push_back(now_);
  bool go_on = true;
  for (const Callback& callback : options_.after_epoch) go_on = callback(now_) && go_on;
  return go_on;
}

void FitLoop::end_epoch() {
  const double watched = judge();
  s_.epoch = {};
  if (validation_ && options_.target_accuracy > 0 && now_.test_accuracy >= options_.target_accuracy)
    result_.stopped_by = "target accuracy";
  const bool best = !s_.has_best || watched < s_.best_loss;
  s_.bad_epochs = best ? 0 : s_.bad_epochs + 1;
  if (best) s_.best_loss = watched;
  s_.has_best = true;
  if (options_.patience > 0 && s_.bad_epochs >= options_.patience) result_.stopped_by = "patience";
  if (plateau_) {
    const bool maximize = std::get<optim::Plateau>(s_.options.schedule.shape).maximize;
    plateau_->observe(!maximize ? watched : now_.tested ? now_.test_accuracy : now_.accuracy);
    s_.plateau = plateau_->state();
  }
  if (!report()) {
    s_.stop = true;
    if (s_.cluster.size() == 1 || !strategy_->collective()) result_.stopped_by = "callback";
  }
  save(best);
}

void FitLoop::save(bool best) {
  const bool regular =
      s_.step % per_epoch_ == 0 || (options_.save_every > 0 && s_.step % options_.save_every == 0);
  strategy_->settle(s_.step, {.regular = regular, .ends = !result_.stopped_by.empty()});
  if (options_.checkpoints.empty() || s_.cluster.rank() != 0) return;
  if (saved_ == s_.step && !best) return;
  strategy_->fetch();
  checkpoint::save_checkpoint(options_.checkpoints, s_.checkpoint(),
                              {.keep_last = options_.keep_last, .best = best});
  saved_ = s_.step;
}

}  // namespace artel
