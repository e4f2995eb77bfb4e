#include "artel/train/strategies/synchronous.h"

#include <array>

#include "artel/base/log.h"
#include "artel/train/strategies/local_steps.h"
#include "artel/train/trainer_state.h"

namespace artel {
namespace {

// Of the steps by which the wire is judged: the first ones are slower than usual.
constexpr int64_t kWarmUpSteps = 4, kMeasuredSteps = 12;

}  // namespace

Synchronous::Synchronous(const Fit& fit)
    : Strategy(fit),
      exchange_(fit.state.cluster.group(), exchange_options(fit.state.options), fit.timeline),
      keeper_(fit, fmt::format("compress \"{}\"", fit.state.options.compress)) {
  TrainerState& s = fit.state;
  comm::Group* const group = s.cluster.group();
  if (!group || !exchange_.lossy()) {
    s.own_states.clear();  // of another exchange
  } else if (const auto own = keeper_.restore()) {
    exchange_.set_state(*own, fit.stepper.buckets(fit.batch_size));
  }
  weighs_ = s.options.allow_lossy && s.options.strategy == "auto" && !exchange_.lossy() && group &&
            group->size() > 1;
}

Strategy::Outcome Synchronous::step(const data::Batch& batch, const StepOptions& options) {
  TrainerState& s = fit_.state;
  const std::vector<Bucket>& buckets = fit_.stepper.buckets(batch.total);
  exchange_.begin_step(options.number, buckets, fit_.division.layout());
  const double computing = compute(batch, options, {0, s.lanes},
                                   [&](int bucket, const std::vector<std::byte*>& partials) {
                                     exchange_.start(bucket, buckets[bucket], partials);
                                   });
  const StepStatistics statistics = fit_.stepper.read_statistics(exchange_.wait(0), options.number);
  update(options, batch.total, 1, s.lanes, [&](int bucket) { return exchange_.wait(bucket); });
  stepped_ = true;
  if (weighs_) weigh(computing);
  const bool balances = !exchange_.lossy() && !economy_.any() && s.cluster.size() > 1;
  if (balances && options.number % Division::kBalanceEvery == 0)
    fit_.division.balance(options.number);
  Outcome outcome = outcome_of(statistics, 1);
  outcome.together = {.loss = statistics.loss * static_cast<double>(batch.total),
                      .correct = static_cast<double>(statistics.correct),
                      .labels = static_cast<double>(statistics.labels),
                      .stop = statistics.stop};
  return outcome;
}

void Synchronous::settle(int64_t step, const Pause& pause) {
  if (!fit_.state.cluster.group() || !exchange_.lossy() || !stepped_) return;
  keeper_.keep(step, [&] { return exchange_.state(); });
  if (fit_.saves || pause.ends) keeper_.gather(step);
}

// After the first steps: all workers learn the largest costs and choose the same.
void Synchronous::weigh(double computing) {
  cost_.computing += computing;
  if (++measured_ == kWarmUpSteps) {
    cost_ = {};
    traffic_before_ = exchange_.traffic();
  }
  if (measured_ < kWarmUpSteps + kMeasuredSteps) return;
  weighs_ = false;
  const Exchange::Traffic& traffic = exchange_.traffic();
  std::array costs = {cost_.computing, traffic.waited_seconds - traffic_before_.waited_seconds,
                      traffic.wire_seconds - traffic_before_.wire_seconds};
  fit_.state.cluster.group()->all_reduce(std::as_writable_bytes(std::span(costs)),
                                         comm::ElementType::f64, comm::ReductionKind::max,
                                         {.label = "cost of steps"});
  cost_ = {costs[0], costs[1], costs[2]};
  economy_ = choose_economy(cost_);
}

std::unique_ptr<Strategy> Synchronous::successor() {
  if (!economy_.any()) return nullptr;
  if (fit_.state.cluster.rank() == 0)
    log(LogLevel::info,
        "the wire costs {:.0f} % of computing: averaging weights every {} steps{}{}",
        100 * cost_.waiting / cost_.computing, economy_.local_steps,
        economy_.compress.empty() ? "" : ", packed by ", economy_.compress);
  fit_.state.economy = economy_;
  // As a run that is resumed from here begins.
  fit_.division.set(comm::LaneLayout::even(fit_.state.lanes, fit_.state.cluster.size()));
  return std::make_unique<LocalSteps>(fit_, economy_, cost_.computing / kMeasuredSteps, traffic());
}

Strategy::Traffic Synchronous::traffic() const {
  return {exchange_.traffic().waited_seconds, exchange_.traffic().sent_bytes};
}

}  // namespace artel
