#include "artel/train/strategies/local_steps.h"

#include <algorithm>
#include <array>

#include "artel/base/log.h"
#include "artel/train/exchange.h"
#include "artel/train/trainer_state.h"
#include "artel/train/worker_sum.h"

namespace artel {
namespace {

constexpr int kMeasuredMeetings = 3;

std::string kind_of(const Economy& economy) {
  return fmt::format("compress \"{}\", {} local steps", economy.compress, economy.local_steps);
}

}  // namespace

LocalSteps::LocalSteps(const Fit& fit, const Economy& economy, double computing,
                       const Traffic& traffic)
    : Strategy(fit),
      economy_(economy),
      computing_(computing),
      averaging_(
          *fit.state.cluster.group(), fit.state.parameters, fit.state.outer_velocity,
          [&s = fit.state](const std::string& name) { return s.trained(name); },
          AveragingOptions{.momentum = fit.state.options.outer_momentum,
                           .learning_rate = fit.state.options.outer_learning_rate,
                           .compress = economy.compress,
                           .seed = fit.state.options.seed}),
      keeper_(fit, kind_of(economy)),
      traffic_(traffic),
      stepped_(true),
      unjudged_meetings_(kMeasuredMeetings) {}

LocalSteps::LocalSteps(const Fit& fit, const Economy& economy) : LocalSteps(fit, economy, 0, {}) {
  stepped_ = false;
  unjudged_meetings_ = 0;
  const auto own = keeper_.restore();
  if (!own) return;
  averaging_.set_state(*own);
  const std::vector<std::span<float>> blocks = fit.stepper.update().memory();
  for (size_t i = 0; i < blocks.size(); ++i)
    if (const auto found = own->find(fmt::format("optimizer {}", i)); found != own->end())
      std::copy(found->second.begin(), found->second.end(), blocks[i].begin());
}

Strategy::Outcome LocalSteps::step(const data::Batch& batch, const StepOptions& options) {
  const std::vector<Bucket>& buckets = fit_.stepper.buckets(batch.total);
  const comm::LaneRange lanes = fit_.division.own();
  std::byte* sums = nullptr;
  compute(batch, options, lanes, [&](int bucket, const std::vector<std::byte*>& partials) {
    add_partials(buckets[bucket], partials);
    sums = partials.front();
  });
  const StepStatistics statistics = fit_.stepper.read_statistics(sums, options.number);
  const double share = fit_.division.own_share(batch.total);
  // Else nothing of the batch is this worker's.
  if (share > 0) update(options, batch.total, share, lanes.size(), [&](int) { return sums; });
  stepped_ = true;
  since_.loss += statistics.loss * static_cast<double>(batch.total);
  since_.correct += static_cast<double>(statistics.correct);
  since_.labels += static_cast<double>(statistics.labels);
  Outcome outcome = outcome_of(statistics, share);
  // Workers meet wherever the weights matter to others: for a test, a checkpoint or the end.
  if (meets_anyway(options.number) || options.number >= fit_.last_step) {
    meet(options.number);
    outcome.together = std::exchange(since_, {});
  }
  return outcome;
}

// Whether workers meet after this step also in a run that goes on.
bool LocalSteps::meets_anyway(int64_t step) const {
  return step % economy_.local_steps == 0 || fit_.saves_after(step);
}

void LocalSteps::meet(int64_t step) {
  if (!meets_anyway(step)) keep(step, true);
  comm::Group& group = *fit_.state.cluster.group();
  const Timeline::Scope scope(fit_.timeline, "wire", Timeline::kMain, "average");
  const Clock::time_point before = Clock::now();
  traffic_.sent_bytes +=
      averaging_.meet(static_cast<float>(fit_.division.own_share(fit_.batch_size)), step);
  std::array sums = {since_.loss, since_.correct, since_.labels, fit_.state.stop ? 1.0 : 0.0};
  add_over_workers(group, std::as_writable_bytes(std::span(sums)), comm::ElementType::f64,
                   "statistics");
  since_ = {sums[0], sums[1], sums[2], sums[3] > 0};
  const double seconds = seconds_between(before, Clock::now());
  traffic_.waited_seconds += seconds;
  if (unjudged_meetings_ > 0) judge_meeting(seconds);
}

// Whoever comes last sees what a meeting costs; the others have waited for it.
void LocalSteps::judge_meeting(double seconds) {
  meeting_cost_ = std::min(meeting_cost_, seconds);
  if (--unjudged_meetings_ > 0) return;
  TrainerState& s = fit_.state;
  s.cluster.group()->all_reduce(std::as_writable_bytes(std::span(&meeting_cost_, 1)),
                                comm::ElementType::f64, comm::ReductionKind::min,
                                {.label = "cost of a meeting"});
  const Economy rarer = stretched(economy_, meeting_cost_, computing_);
  if (rarer.local_steps == economy_.local_steps) return;
  economy_ = s.economy = rarer;
  keeper_.set_kind(kind_of(economy_));
  if (s.cluster.rank() == 0)
    log(LogLevel::info, "a meeting takes {:.0f} ms: averaging weights every {} steps",
        1000 * meeting_cost_, economy_.local_steps);
}

void LocalSteps::keep(int64_t step, bool between) {
  if (!stepped_) return;
  keeper_.keep(step, [&] {
    OwnState own = averaging_.state(between);
    if (!between) return own;
    const std::vector<std::span<float>> blocks = fit_.stepper.update().memory();
    for (size_t i = 0; i < blocks.size(); ++i)
      own[fmt::format("optimizer {}", i)].assign(blocks[i].begin(), blocks[i].end());
    return own;
  });
}

void LocalSteps::settle(int64_t step, const Pause& pause) {
  if (!pause.regular) keep(step, true);
  if (settled_ != step) {
    const auto share = static_cast<float>(fit_.division.own_share(fit_.batch_size));
    for (const std::span<float> block : fit_.stepper.update().memory()) {
      for (float& value : block) value *= share;
      add_over_workers(*fit_.state.cluster.group(), std::as_writable_bytes(block),
                       comm::ElementType::f32, "optimizer");
    }
    settled_ = step;
  }
  keep(step, false);
  if (stepped_ && (fit_.saves || pause.ends)) keeper_.gather(step);
}

}  // namespace artel
