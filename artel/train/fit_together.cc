// What the workers of a fit do together: agree, share their state, meet between local steps, and
// divide the work by speed.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/random.h"
#include "artel/comm/balance.h"
#include "artel/train/fit_loop.h"
#include "artel/train/worker_sum.h"

namespace artel {
namespace {

// Workers compare their speeds once the slowest has computed for so long: less says more about the
// moment than about the worker.
constexpr double kBalanceSeconds = 0.25;
// Of the steps by which `auto` judges the wire: the first ones are slower than usual.
constexpr int64_t kWarmUpSteps = 4, kMeasuredSteps = 12;
// Of the meetings by which `auto` judges its choice.
constexpr int kMeasuredMeetings = 3;

}  // namespace

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
    if (group.rank() == 0) compile(s_.stepper_for(loader_.layout()));
    s_.choices.tune = false;
  }
  s_.restore_state(broadcast_text(group, s_.state_text()));
  check_agreement(group, facts());
}

// For every size that a batch may have.
void Trainer::FitLoop::compile(Stepper& stepper) const {
  stepper.buckets(options_.batch_size);
  const int64_t rest = loader_.sampler().samples_per_epoch() % options_.batch_size;
  if (rest > 0) stepper.buckets(rest);
}

Facts Trainer::FitLoop::facts() const {
  const data::SampleLayout& layout = loader_.layout();
  Facts facts = {{"version", ARTEL_VERSION},
                 {"samples", std::to_string(loader_.set().size())},
                 {"sample", to_string(input_type(layout))},
                 {"classes", std::to_string(layout.classes)},
                 {"batch_size", std::to_string(options_.batch_size)},
                 {"keep_last_batch", options_.keep_last_batch ? "yes" : "no"},
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
  restore_own(group);
  may_save_bytes_ = s_.options.allow_lossy && s_.options.strategy == "auto" && !averaging_ &&
                    !exchange_.lossy() && group.size() > 1;
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

void Trainer::FitLoop::set_layout(comm::LaneLayout layout) {
  require(s_.lanes >= s_.cluster.size(), ErrorKind::invalid_argument,
          "cluster.lanes: got {}, expected at least one for each of the {} workers", s_.lanes,
          s_.cluster.size());
  exchange_.set_layout(std::move(layout));
  const comm::LaneRange own = exchange_.layout().range(s_.cluster.rank());
  loader_.serve(own.first, own.last, s_.lanes);
}

// Whether this step is followed by a checkpoint, or a meeting, also in a run that goes on.
bool Trainer::FitLoop::saves_anyway() const {
  return s_.step % per_epoch_ == 0 ||
         (options_.save_every > 0 && s_.step % options_.save_every == 0);
}
bool Trainer::FitLoop::meets_anyway() const {
  return s_.step % local_steps_ == 0 || saves_anyway();
}

// With local steps: whether the workers meet after this step. They do wherever the weights matter
// to others: for a test, a checkpoint or the end.
bool Trainer::FitLoop::meets() const { return meets_anyway() || s_.step >= now_.steps; }

void Trainer::FitLoop::meet() {
  if (!meets_anyway()) keep_own(true);
  const Timeline::Scope scope(timeline_.get(), "wire", Timeline::kMain, "average");
  const Clock::time_point before = Clock::now();
  meetings_.sent_bytes +=
      averaging_->meet(static_cast<float>(own_share(options_.batch_size)), s_.step);
  std::array sums = {since_meeting_.loss, since_meeting_.correct, since_meeting_.labels,
                     s_.stop ? 1.0 : 0.0};
  add_over_workers(*s_.cluster.group(), std::as_writable_bytes(std::span(sums)),
                   comm::ElementType::f64, "statistics");
  since_meeting_ = {sums[0], sums[1], sums[2], sums[3]};
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

// With local steps each worker has an optimizer state of its own; a checkpoint holds their mean,
// and all go on from it, as a run that is resumed does.
void Trainer::FitLoop::settle() {
  if (!averaging_ || settled_ == s_.step) return;
  const auto share = static_cast<float>(own_share(options_.batch_size));
  for (const std::span<float> block : stepper_->optimizer_memory()) {
    for (float& value : block) value *= share;
    add_over_workers(*s_.cluster.group(), std::as_writable_bytes(block), comm::ElementType::f32,
                     "optimizer");
  }
  settled_ = s_.step;
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
