#include "artel/train/fit_loop.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/train/batches.h"

namespace artel {

Trainer::FitLoop::FitLoop(Trainer& trainer, data::DatasetPtr train, const FitOptions& options)
    : trainer_(trainer),
      s_(*trainer.state_),
      options_(options),
      validation_(options.validation && options.validation->size() > 0 ? options.validation
                                                                       : nullptr),
      loader_(train, {.sampling = {.batch_size = options.batch_size, .seed = s_.options.seed},
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
  stepper_ = &s_.stepper_for(target_type(loader_.layout()));
  if (s_.cluster.group()) share_state(*s_.cluster.group());
  if (s_.cluster.servers() > 0) begin_serving();
  loader_.seek(s_.position);
  set_layout(comm::LaneLayout::even(s_.lanes, s_.cluster.size()));
  const int64_t by_epochs = options.epochs > 0 ? options.epochs * per_epoch_ : INT64_MAX;
  now_.steps = options.steps > 0 ? std::min(options.steps, by_epochs) : by_epochs;
  now_.epochs = (now_.steps + per_epoch_ - 1) / per_epoch_;
  now_.step = s_.step;
  schedule_.emplace(s_.options.schedule, s_.options.optimizer.learning_rate,
                    optim::Horizon{.total_steps = now_.steps,
                                   .steps_per_epoch = per_epoch_,
                                   .batch_size = options.batch_size});
  if (const auto* plateau = std::get_if<optim::Plateau>(&s_.options.schedule.shape))
    plateau_.emplace(*plateau, s_.plateau);
  if (options.timeline) record_kernels();
}

Trainer::FitLoop::~FitLoop() {
  if (timeline_ && stepper_) stepper_->set_timing({});
}

FitResult Trainer::FitLoop::run() {
  s_.stop = false;
  if (s_.step >= now_.steps) result_.stopped_by = "steps";
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
  // A run by steps is judged at its end, wherever in an epoch that is; weights of servers only at
  // the end of epochs.
  if (!remote_ && options_.steps > 0 && result_.stopped_by == "steps" && s_.epoch.samples > 0) {
    judge();
    report();
  }
  save(false);
  if (remote_) remote_->leave();
  result_.last = now_;
  if (timeline_) result_.timeline = timeline_->gather();
  return std::move(result_);
}

// Every kernel becomes a span on the thread of its lane.
void Trainer::FitLoop::record_kernels() {
  stepper_->buckets(options_.batch_size);
  stepper_->set_timing([this](int lane, const StepTiming& timing) {
    const auto [begin, end] = Stepper::rows_of_lane(options_.batch_size, s_.lanes, lane);
    const Plan& plan = stepper_->program(end - begin).plan();
    const Clock::time_point now = Clock::now();
    timeline_->add("compute", Timeline::kFirstLane + lane, plan.steps[timing.step].op,
                   now - std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(timing.seconds)),
                   now);
  });
}

std::pair<int64_t, int64_t> Trainer::FitLoop::own_rows() const {
  const comm::LaneRange own = exchange_.layout().range(s_.cluster.rank());
  return {Stepper::rows_of_lane(options_.batch_size, s_.lanes, own.first).first,
          Stepper::rows_of_lane(options_.batch_size, s_.lanes, own.last).first};
}

double Trainer::FitLoop::share() const {
  if (!averaging_ && !apart()) return 1;
  const auto [first, last] = own_rows();
  return static_cast<double>(last - first) / static_cast<double>(options_.batch_size);
}

void Trainer::FitLoop::step(const data::Batch& batch) {
  ++s_.step;
  now_.step = s_.step;
  now_.epoch = batch.epoch + 1;
  now_.learning_rate = schedule_->at(s_.step) * (plateau_ ? plateau_->factor() : 1);
  const std::vector<Bucket>& buckets = stepper_->buckets(options_.batch_size);
  if (remote_) return step_with_servers(batch);
  exchange_.begin_step(s_.step, buckets);
  const Clock::time_point before = Clock::now();
  {
    const Timeline::Scope scope(timeline_.get(), "compute", Timeline::kMain,
                                "forward and backward");
    stepper_->compute({.range = exchange_.layout().range(s_.cluster.rank()),
                       .batch = options_.batch_size,
                       .step = s_.step,
                       .stop = s_.stop},
                      batch.x, batch.y, [&](int bucket, const std::vector<std::byte*>& partials) {
                        exchange_.start(bucket, buckets[bucket], partials);
                      });
  }
  const double computing = seconds_between(before, Clock::now());
  computing_ += computing;
  const StepStatistics statistics = stepper_->read_statistics(exchange_.wait(0), s_.step);
  update(buckets);
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
  const int64_t samples = options_.batch_size;
  // Language models have a label for each position; every sample has as many.
  const int64_t labels =
      batch.size() > 0 ? count_labels(batch.y) * samples / batch.size() : samples;
  now_.loss = own.loss / share();
  now_.samples += samples;
  now_.accuracy = static_cast<double>(own.correct) / (share() * static_cast<double>(labels));
  s_.epoch.labels += labels;
  s_.epoch.samples += samples;
  since_meeting_.loss += own.loss * static_cast<double>(samples);
  since_meeting_.correct += static_cast<double>(own.correct);
  since_meeting_.stop = own.stop;
  const bool together = !averaging_ || meets();
  if (apart()) since_meeting_.loss /= share(), since_meeting_.correct /= share();
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
  s_.epoch.correct += static_cast<int64_t>(since_meeting_.correct);
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
  now_.accuracy = static_cast<double>(s_.epoch.correct) / static_cast<double>(s_.epoch.labels);
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
    plateau_->observe(watched);
    s_.plateau = plateau_->state();
  }
  if (!report()) {
    s_.stop = true;
    if (s_.cluster.size() == 1 || apart()) result_.stopped_by = "callback";
  }
  save(best);
}

void Trainer::FitLoop::save(bool best) {
  settle();
  if (options_.checkpoints.empty() || s_.cluster.rank() != 0) return;
  if (saved_ == s_.step && !best) return;
  if (remote_) remote_->fetch(true, false);
  checkpoint::save_checkpoint(options_.checkpoints, s_.checkpoint(),
                              {.keep_last = options_.keep_last, .best = best});
  saved_ = s_.step;
}

}  // namespace artel
