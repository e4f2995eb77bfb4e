#include "artel/train/fit_loop.h"

#include <algorithm>
#include <array>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/comm/balance.h"
#include "artel/train/batches.h"
#include "artel/train/worker_sum.h"

namespace artel {
namespace {

// Workers compare their speeds every so many steps, once the slowest has computed for so long: less
// says more about the moment than about the worker.
constexpr int64_t kBalanceEvery = 16;
constexpr double kBalanceSeconds = 0.25;
// Of the steps by which `auto` judges the wire: the first ones are slower than usual.
constexpr int64_t kWarmUpSteps = 4, kMeasuredSteps = 12;
// Of the meetings by which `auto` judges its choice.
constexpr int kMeasuredMeetings = 3;

}  // namespace

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

// Restores what is to be resumed, and makes sure that all workers do the same thing.
void Trainer::FitLoop::begin_together() {
  if (options_.resume && s_.cluster.rank() == 0) {
    if (const auto newest = checkpoint::load_newest(options_.checkpoints)) {
      for (const std::string& reason : newest->refused) log(LogLevel::warning, "{}", reason);
      s_.restore(newest->checkpoint);
    }
  }
  if (!s_.cluster.group()) return;
  comm::Group& group = *s_.cluster.group();
  if (s_.choices.tune) {
    // Timing decides on worker 0 only; all others get its choices.
    if (group.rank() == 0)
      s_.stepper_for(target_type(loader_.layout())).buckets(options_.batch_size);
    s_.choices.tune = false;
  }
  s_.restore_state(broadcast_text(group, s_.state_text()));
  check_agreement(group, facts());
}

Facts Trainer::FitLoop::facts() const {
  const data::SampleLayout& layout = loader_.layout();
  Facts facts = {{"version", ARTEL_VERSION},
                 {"samples", std::to_string(loader_.set().size())},
                 {"sample", to_string(input_type(layout))},
                 {"classes", std::to_string(layout.classes)},
                 {"batch_size", std::to_string(options_.batch_size)},
                 {"epochs", std::to_string(options_.epochs)},
                 {"steps", std::to_string(options_.steps)},
                 {"seed", std::to_string(s_.options.seed)},
                 {"lanes", std::to_string(s_.lanes)},
                 {"loss", s_.options.loss},
                 {"strategy", s_.options.strategy},
                 {"reduction", s_.options.reduction},
                 {"coordinators", std::to_string(s_.options.coordinators)},
                 {"compress", s_.options.compress},
                 {"local_steps", std::to_string(s_.options.local_steps)},
                 {"outer_momentum", fmt::format("{}", s_.options.outer_momentum)},
                 {"servers", std::to_string(s_.cluster.servers())},
                 {"delay", s_.options.delay ? std::to_string(*s_.options.delay) : "none"},
                 {"push_every", std::to_string(s_.options.push_every)},
                 {"fetch_every", std::to_string(s_.options.fetch_every)},
                 {"synchronous_epochs", std::to_string(s_.options.synchronous_epochs)},
                 {"allow_lossy", s_.options.allow_lossy ? "yes" : "no"},
                 {"outer_lr", fmt::format("{}", s_.options.outer_learning_rate)},
                 {"save_every", std::to_string(options_.save_every)},
                 {"timeline", options_.timeline ? "yes" : "no"},
                 {"plan", std::to_string(hash_name(to_string(s_.choices)))}};
  for (const auto& [key, value] : optim::to_options(s_.options.optimizer))
    facts.emplace_back("optimizer." + key, value);
  for (const auto& [key, value] : optim::to_options(s_.options.schedule))
    facts.emplace_back("schedule." + key, value);
  for (const ParameterEntry& entry : s_.parameters.entries())
    facts.emplace_back("parameter " + entry.name, to_string(entry.shape));
  // The first and the last sample stand for the content of the data.
  for (const int64_t sample : {int64_t{0}, loader_.set().size() - 1}) {
    const data::SampleLayout& raw = loader_.set().layout();
    std::string bytes(raw.input_bytes() + raw.target_bytes(), '\0');
    const std::span<std::byte> all = std::as_writable_bytes(std::span(bytes));
    loader_.set().read(sample, all.first(raw.input_bytes()), all.subspan(raw.input_bytes()));
    facts.emplace_back(fmt::format("data sample {}", sample), std::to_string(hash_name(bytes)));
  }
  return facts;
}

// Weights and optimizer state of worker 0, which may have loaded them from a file.
void Trainer::FitLoop::share_state(comm::Group& group) {
  group.broadcast(std::as_writable_bytes(s_.parameters.block()), 0, {.label = "parameters"});
  for (const std::span<float> block : stepper_->optimizer_memory())
    group.broadcast(std::as_writable_bytes(block), 0, {.label = "optimizer"});
  group.broadcast(std::as_writable_bytes(s_.outer_velocity.block()), 0, {.label = "velocity"});
  if (s_.saving.any())
    begin_averaging(s_.saving.local_steps, s_.saving.compress);
  else if (s_.options.local_steps > 1)
    begin_averaging(s_.options.local_steps, s_.options.compress);
  may_save_bytes_ = s_.options.allow_lossy && s_.options.strategy == "auto" && !averaging_ &&
                    !exchange_.lossy() && group.size() > 1;
}

// The servers get the parameters of worker 0, who may have loaded them from a file.
void Trainer::FitLoop::begin_serving() {
  const TrainerOptions& options = s_.options;
  require(!averaging_ && options.local_steps == 1, ErrorKind::invalid_argument,
          "cluster.local_steps: got {} with parameter servers, expected 1", options.local_steps);
  require(!stepper_->clips(), ErrorKind::invalid_argument,
          "train.clip_norm: the length of the whole gradient is not known to any one parameter "
          "server; try the optimizer's clip_value, or a strategy without servers");
  const bool downpour = options.strategy == "downpour";
  remote_.emplace(*s_.cluster.world(), *stepper_, options_.batch_size,
                  RemoteOptions{.servers = s_.cluster.servers(),
                                .delay = downpour ? std::nullopt : options.delay,
                                .rule = optim::to_options(options.optimizer),
                                .compress = options.compress,
                                .push_every = downpour ? options.push_every : 1,
                                .fetch_every = downpour ? options.fetch_every : 1,
                                .seed = options.seed});
  const bool together =
      downpour ? s_.step < options.synchronous_epochs * per_epoch_ : options.delay == 0;
  remote_->begin(*s_.cluster.group(), together, s_.step);
  s_.alone = apart();
}

// From now on workers train apart and meet every so many steps.
void Trainer::FitLoop::begin_averaging(int64_t every, const std::string& compress) {
  local_steps_ = every;
  exchange_.set_apart(true);
  averaging_.emplace(
      *s_.cluster.group(), s_.parameters, s_.outer_velocity,
      [this](const std::string& name) { return s_.trained(name); },
      AveragingOptions{.momentum = s_.options.outer_momentum,
                       .learning_rate = s_.options.outer_learning_rate,
                       .compress = compress,
                       .seed = s_.options.seed});
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

void Trainer::FitLoop::set_layout(comm::LaneLayout layout) {
  require(s_.lanes >= s_.cluster.size(), ErrorKind::invalid_argument,
          "cluster.lanes: got {}, expected at least one for each of the {} workers", s_.lanes,
          s_.cluster.size());
  exchange_.set_layout(std::move(layout));
  const auto [first, last] = own_rows();
  loader_.serve(first, last);
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

// The same with parameter servers, which make the update.
void Trainer::FitLoop::step_with_servers(const data::Batch& batch) {
  const RemoteParameters::Step step = {.number = s_.step,
                                       .learning_rate = static_cast<float>(now_.learning_rate),
                                       .lanes = exchange_.layout().range(s_.cluster.rank()),
                                       .stop = s_.stop,
                                       .last = s_.step >= now_.steps};
  const Clock::time_point before = Clock::now();
  std::vector<std::byte*> own;
  {
    const Timeline::Scope scope(timeline_.get(), "compute", Timeline::kMain,
                                "forward and backward");
    stepper_->compute(
        {.range = step.lanes, .batch = options_.batch_size, .step = s_.step, .stop = s_.stop},
        batch.x, batch.y, [&](int bucket, const std::vector<std::byte*>& partials) {
          if (remote_->together()) remote_->start(bucket, partials, step);
          own = partials;
        });
  }
  computing_ += seconds_between(before, Clock::now());
  const Timeline::Scope scope(timeline_.get(), "wait", Timeline::kMain, "servers");
  if (remote_->together()) {
    account(stepper_->read_statistics(remote_->finish(), s_.step), batch);
    if (s_.cluster.size() > 1 && s_.step % kBalanceEvery == 0) balance();
    const bool warmed_up =
        s_.options.strategy == "downpour" && s_.step == s_.options.synchronous_epochs * per_epoch_;
    if (warmed_up && result_.stopped_by.empty()) {
      remote_->begin(*s_.cluster.group(), false, s_.step);
      s_.alone = true;
    }
  } else {
    const auto share = static_cast<float>(this->share());
    const StepStatistics statistics =
        stepper_->read_statistics(remote_->step_apart(own, step, share), s_.step);
    account(statistics, batch);
    if (s_.step % kBalanceEvery == 0) balance_apart();
  }
  s_.position = loader_.state();
}

// When this worker has made its last step: worker 0 waits for the others and gets what they made.
void Trainer::FitLoop::finish_serving() {
  if (s_.cluster.rank() != 0) return;
  remote_->fetch(false, apart());
  result_.servers = remote_->report();
  if (apart() && validation_ && !result_.epochs.empty()) {
    // The weights have changed since this worker's last epoch ended.
    const Evaluation test = trainer_.evaluate(validation_, options_.augment.for_testing());
    result_.epochs.back().test_loss = now_.test_loss = test.loss;
    result_.epochs.back().test_accuracy = now_.test_accuracy = test.accuracy;
  }
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

// With local steps: whether the workers meet after this step. They do wherever the weights matter
// to others: for a test, a checkpoint or the end.
bool Trainer::FitLoop::meets() const {
  return s_.step % local_steps_ == 0 || s_.step % per_epoch_ == 0 || s_.step >= now_.steps ||
         (options_.save_every > 0 && s_.step % options_.save_every == 0);
}

void Trainer::FitLoop::meet() {
  const Timeline::Scope scope(timeline_.get(), "wire", Timeline::kMain, "average");
  const Clock::time_point before = Clock::now();
  meetings_.sent_bytes += averaging_->meet(static_cast<float>(share()), s_.step);
  std::array sums = {since_meeting_.loss, since_meeting_.correct, s_.stop ? 1.0 : 0.0};
  add_over_workers(*s_.cluster.group(), std::as_writable_bytes(std::span(sums)),
                   comm::ElementType::f64, "statistics");
  since_meeting_ = {sums[0], sums[1], sums[2]};
  const double seconds = seconds_between(before, Clock::now());
  meetings_.waited_seconds += seconds;
  if (unjudged_meetings_ > 0) judge_meeting(seconds);
}

// Whoever comes last sees what a meeting costs; the others have waited for it.
void Trainer::FitLoop::judge_meeting(double seconds) {
  meeting_cost_ = std::min(meeting_cost_, seconds);
  if (--unjudged_meetings_ > 0) return;
  s_.cluster.group()->all_reduce(std::as_writable_bytes(std::span(&meeting_cost_, 1)),
                                 comm::ElementType::f64, comm::ReductionKind::min,
                                 {.label = "cost of a meeting"});
  s_.saving = stretched(s_.saving, meeting_cost_, cost_.computing / kMeasuredSteps);
  if (s_.saving.local_steps == local_steps_) return;
  local_steps_ = s_.saving.local_steps;
  if (s_.cluster.rank() == 0)
    log(LogLevel::info, "a meeting takes {:.0f} ms: averaging weights every {} steps",
        1000 * meeting_cost_, local_steps_);
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

// With local steps each worker has an optimizer state of its own; a checkpoint holds their mean,
// and all go on from it, as a run that is resumed does.
void Trainer::FitLoop::settle() {
  if (!averaging_ || settled_ == s_.step) return;
  const auto share = static_cast<float>(this->share());
  for (const std::span<float> block : stepper_->optimizer_memory()) {
    for (float& value : block) value *= share;
    add_over_workers(*s_.cluster.group(), std::as_writable_bytes(block), comm::ElementType::f32,
                     "optimizer");
  }
  settled_ = s_.step;
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

// Gives each worker lanes in proportion to its measured speed; the bits do not change.
void Trainer::FitLoop::balance() {
  comm::Group& group = *s_.cluster.group();
  const comm::LaneLayout& old = exchange_.layout();
  std::vector<double> seconds(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&computing_, 1)),
                   std::as_writable_bytes(std::span(seconds)), {}, {.label = "speed"});
  if (*std::max_element(seconds.begin(), seconds.end()) < kBalanceSeconds) return;
  computing_ = 0;
  for (size_t i = 0; i < seconds.size(); ++i) seconds[i] /= old.lanes_of_rank[i];
  comm::LaneLayout better = comm::balanced_lanes(old, seconds);
  if (better.lanes_of_rank == old.lanes_of_rank) return;
  if (group.rank() == 0)
    log(LogLevel::info, "step {}: lanes of the workers are now {}", s_.step,
        fmt::join(better.lanes_of_rank, ", "));
  set_layout(std::move(better));
}

// The same for workers that run apart: a server decides for all.
void Trainer::FitLoop::balance_apart() {
  const int own = exchange_.layout().range(s_.cluster.rank()).size();
  const double seconds = computing_ / std::max(1, own);
  computing_ = 0;
  comm::LaneLayout better = remote_->shares(s_.step, seconds);
  if (better.lanes_of_rank != exchange_.layout().lanes_of_rank) set_layout(std::move(better));
}

// After the first steps: all workers learn the largest costs and choose the same.
void Trainer::FitLoop::consider_saving(double computing) {
  cost_.computing += computing;
  if (++measured_ == kWarmUpSteps) {
    cost_ = {};
    waited_before_ = exchange_.traffic();
  }
  if (measured_ < kWarmUpSteps + kMeasuredSteps) return;
  may_save_bytes_ = false;
  const Exchange::Traffic& traffic = exchange_.traffic();
  std::array costs = {cost_.computing, traffic.waited_seconds - waited_before_.waited_seconds,
                      traffic.wire_seconds - waited_before_.wire_seconds};
  s_.cluster.group()->all_reduce(std::as_writable_bytes(std::span(costs)), comm::ElementType::f64,
                                 comm::ReductionKind::max, {.label = "cost of steps"});
  cost_ = {costs[0], costs[1], costs[2]};
  s_.saving = choose_saving(cost_);
  if (!s_.saving.any()) return;
  unjudged_meetings_ = kMeasuredMeetings;
  if (s_.cluster.rank() == 0)
    log(LogLevel::info,
        "the wire costs {:.0f} % of computing: averaging weights every {} steps{}{}",
        100 * costs[1] / costs[0], s_.saving.local_steps,
        s_.saving.compress.empty() ? "" : ", packed by ", s_.saving.compress);
  begin_averaging(s_.saving.local_steps, s_.saving.compress);
}

}  // namespace artel
