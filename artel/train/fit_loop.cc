#include "artel/train/fit_loop.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/predict/batches.h"

namespace artel {

Trainer::FitLoop::FitLoop(Trainer& trainer, data::DatasetPtr train, const FitOptions& options)
    : trainer_(trainer),
      s_(*trainer.state_),
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
      timeline_(options.timeline ? std::make_unique<Timeline>(s_.cluster.group()) : nullptr),
      exchange_(
          s_.cluster.group(),
          {.strategy = s_.cluster.servers() > 0 ? "auto" : s_.options.strategy,
           .reduction = s_.options.reduction,
           .compress =
               s_.options.local_steps > 1 || s_.cluster.servers() > 0 ? "" : s_.options.compress,
           .coordinators = s_.options.coordinators,
           .seed = s_.options.seed},
          timeline_.get()) {
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
  if (s_.cluster.group()) share_state(*s_.cluster.group());
  if (s_.cluster.servers() > 0) begin_serving();
  loader_.seek(s_.position);
  set_layout(comm::LaneLayout::even(s_.lanes, s_.cluster.size()));
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

Trainer::FitLoop::~FitLoop() {
  if (timeline_ && stepper_) stepper_->set_timing({});
}

FitResult Trainer::FitLoop::run() {
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
    if (s_.step % per_epoch_ == 0 && result_.stopped_by != "request") {
      end_epoch();
    } else if (options_.save_every > 0 && s_.step % options_.save_every == 0) {
      save(false);
    }
  }
  if (remote_) finish_serving();
  if (ends_within_epoch()) {
    judge();
    report();
  }
  save(false);
  if (remote_) remote_->leave();
  result_.last = now_;
  if (timeline_) result_.timeline = timeline_->gather();
  return std::move(result_);
}

// A run by steps is judged at its end, wherever in an epoch that is.
bool Trainer::FitLoop::ends_within_epoch() const {
  return options_.steps > 0 && result_.stopped_by == "steps" && s_.epoch.samples > 0;
}

// Every kernel becomes a span on the thread of its lane.
void Trainer::FitLoop::record_kernels() {
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

double Trainer::FitLoop::own_share(int64_t samples) const {
  const comm::LaneRange own = exchange_.layout().range(s_.cluster.rank());
  const int64_t rows = Stepper::rows_of_lane(samples, s_.lanes, own.last).first -
                       Stepper::rows_of_lane(samples, s_.lanes, own.first).first;
  return static_cast<double>(rows) / static_cast<double>(samples);
}

double Trainer::FitLoop::share() const { return updates_alone() ? own_share(batch_) : 1; }

Stepper::Work Trainer::FitLoop::work() const {
  const comm::LaneRange own = exchange_.layout().range(s_.cluster.rank());
  return {.range = own,
          .observing = updates_alone() ? own : comm::LaneRange{0, s_.lanes},
          .batch = batch_,
          .step = s_.step,
          .stop = s_.stop};
}

void Trainer::FitLoop::step(const data::Batch& batch) {
  ++s_.step;
  now_.step = s_.step;
  now_.epoch = batch.epoch + 1;
  now_.learning_rate = schedule_->at(s_.step) * (plateau_ ? plateau_->factor() : 1);
  batch_ = batch.total;
  const std::vector<Bucket>& buckets = stepper_->buckets(batch_);
  if (remote_) return step_with_servers(batch);
  exchange_.begin_step(s_.step, buckets);
  const Clock::time_point before = Clock::now();
  {
    const Timeline::Scope scope(timeline_.get(), "compute", Timeline::kMain,
                                "forward and backward");
    stepper_->compute(work(), batch.x, batch.y,
                      [&](int bucket, const std::vector<std::byte*>& partials) {
                        exchange_.start(bucket, buckets[bucket], partials);
                      });
  }
  const double computing = seconds_between(before, Clock::now());
  computing_ += computing;
  const StepStatistics statistics = stepper_->read_statistics(exchange_.wait(0), s_.step);
  if (share() > 0) update(buckets);  // else nothing of the batch is this worker's
  s_.position = loader_.state();
  account(statistics, batch);
  if (may_save_bytes_) consider_saving(computing);
  const bool exact = !averaging_ && !exchange_.lossy();
  if (exact && s_.cluster.size() > 1 && s_.step % kBalanceEvery == 0) balance();
}

// Updates bucket by bucket, as their sums arrive.
void Trainer::FitLoop::update(const std::vector<Bucket>& buckets) {
  Stepper::Update update = {
      .step = s_.step,
      .learning_rate = static_cast<float>(now_.learning_rate),
      .gradient_scale = static_cast<float>(1 / share()),
      .lanes = averaging_ ? exchange_.layout().range(s_.cluster.rank()).size() : s_.lanes};
  const int count = static_cast<int>(buckets.size());
  if (stepper_->clips()) {
    for (int b = 1; b < count; ++b) exchange_.wait(b);
    update.gradient_scale *= stepper_->clip_scale(exchange_.wait(0), update.gradient_scale);
  }
  for (int b = 0; b < count; ++b) {
    const std::byte* total = exchange_.wait(b);
    const Timeline::Scope scope(timeline_.get(), "update", Timeline::kMain, "update");
    stepper_->apply_bucket(b, total, update);
  }
}

void Trainer::FitLoop::account(const StepStatistics& own, const data::Batch& batch) {
  const double share = this->share();
  if (share > 0) {
    now_.loss = own.loss / share;
    now_.accuracy =
        static_cast<double>(own.correct) / static_cast<double>(std::max<int64_t>(1, own.labels));
  }
  now_.samples += batch.total;
  // Apart from the others, a worker takes what it has seen of a batch for the whole.
  const double whole = !apart() ? 1 : share > 0 ? 1 / share : 0;
  if (whole > 0) s_.epoch.samples += batch.total;
  since_meeting_.loss += whole * own.loss * static_cast<double>(batch.total);
  since_meeting_.correct += whole * static_cast<double>(own.correct);
  since_meeting_.labels += whole * static_cast<double>(own.labels);
  since_meeting_.stop = own.stop;
  const bool together = !averaging_ || meets();
  if (averaging_ && together) meet();
  now_.seconds = seconds_between(begin_, Clock::now());
  now_.seconds_waited = loader_.seconds_waited();
  now_.seconds_exchanging = exchange_.traffic().waited_seconds + meetings_.waited_seconds;
  now_.sent_bytes = exchange_.traffic().sent_bytes + meetings_.sent_bytes;
  if (remote_) {
    now_.seconds_exchanging += remote_->traffic().waited_seconds;
    now_.sent_bytes += remote_->traffic().sent_bytes;
  }
  bool go_on = true;
  for (const Callback& callback : options_.after_step) go_on = callback(now_) && go_on;
  const bool time_is_up = options_.max_seconds > 0 && now_.seconds >= options_.max_seconds;
  if (!go_on || time_is_up) s_.stop = true;
  if (!together) return;
  s_.epoch.loss += since_meeting_.loss;
  s_.epoch.correct += std::llround(since_meeting_.correct);
  s_.epoch.labels += std::llround(since_meeting_.labels);
  // Several workers stop together: the wish of one travels with the sums of the next step.
  const bool stop = apart()                 ? s_.stop || remote_->stopping()
                    : s_.cluster.size() > 1 ? since_meeting_.stop > 0
                                            : s_.stop.load();
  if (stop) result_.stopped_by = !go_on ? "callback" : time_is_up ? "time" : "request";
  if (s_.step >= now_.steps) result_.stopped_by = options_.steps > 0 ? "steps" : "epochs";
  since_meeting_ = {};
}

// The means of the epoch so far, and a test of the network as it is. Returns the loss to watch.
double Trainer::FitLoop::judge() {
  now_.loss = s_.epoch.loss / static_cast<double>(s_.epoch.samples);
  now_.accuracy = static_cast<double>(s_.epoch.correct) /
                  static_cast<double>(std::max<int64_t>(1, s_.epoch.labels));
  if (!validation_ || (apart() && s_.cluster.rank() > 0)) return now_.loss;
  const Evaluation test = trainer_.evaluate(validation_, options_.augment.for_testing());
  now_.tested = true;
  now_.test_loss = test.loss;
  now_.test_accuracy = test.accuracy;
  return test.loss;
}

// Returns whether all callbacks want to go on.
bool Trainer::FitLoop::report() {
  now_.seconds = seconds_between(begin_, Clock::now());
  result_.epochs.push_back(now_);
  bool go_on = true;
  for (const Callback& callback : options_.after_epoch) go_on = callback(now_) && go_on;
  return go_on;
}

void Trainer::FitLoop::end_epoch() {
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
    if (s_.cluster.size() == 1 || apart()) result_.stopped_by = "callback";
  }
  save(best);
}

void Trainer::FitLoop::save(bool best) {
  if (!saves_anyway()) keep_own(true);
  settle();
  keep_own(false);
  if (options_.checkpoints.empty() || s_.cluster.rank() != 0) return;
  if (saved_ == s_.step && !best) return;
  if (remote_) remote_->fetch(true, false);
  checkpoint::save_checkpoint(options_.checkpoints, s_.checkpoint(),
                              {.keep_last = options_.keep_last, .best = best});
  saved_ = s_.step;
}

}  // namespace artel
