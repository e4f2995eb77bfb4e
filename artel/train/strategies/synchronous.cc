#include "artel/train/strategies/synchronous.h"

#include <fmt/format.h>

#include <array>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/comm/benchmark.h"
#include "artel/train/economy.h"
#include "artel/train/exchange.h"
#include "artel/train/strategies/local_steps_strategy.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/own_keeper.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategy.h"

namespace artel {
namespace {

// The network is judged by a few steps, after the first ones, which are slower than usual. Steps
// that take long say enough after a second.
constexpr int64_t kWarmUpSteps = 4, kMeasuredSteps = 12;
constexpr double kWarmUpSeconds = 0.3, kMeasuredSeconds = 1;

constexpr const char* kLinks = "links";

ExchangeOptions exchange_options(const TrainerOptions& options) {
  const auto& own = options.strategy_options.of<SynchronousOptions>();
  return {.strategy = options.strategy,
          .reduction = reduction_of(options),
          .compress = options.strategy_options.of<PackingOptions>().compress,
          .coordinators = static_cast<int>(own.coordinators),
          .seed = options.seed};
}

// Throws for a named algorithm that cannot add in the canonical order, if that is asked for.
void check_reduction(const Situation& now) {
  const std::string& strategy = now.options.strategy;
  const StrategyOptions& options = now.options.strategy_options;
  require(options.of<SynchronousOptions>().reduction != "exact" || can_be_exact(strategy) ||
              options.of<ShardingOptions>().any(),
          ErrorKind::invalid_argument,
          "cluster.reduction: got \"exact\" with cluster.strategy = \"{}\", which adds in an order "
          "that depends on the number of workers; try cluster.strategy = \"auto\" or "
          "\"hierarchical\", or cluster.reduction = \"fast\"",
          strategy);
}

class Synchronous final : public Strategy {
 public:
  explicit Synchronous(const Fit& fit);

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  void after_step(int64_t step) override;
  bool in_step() const override { return true; }
  bool computes_first() const override { return true; }
  void settle(int64_t step, const Pause& pause) override;
  // What a lossy codec has held back on each worker, and the measured links that a fast reduction
  // has chosen its algorithms by.
  StrategyState state() const override;
  void restore(const StrategyState& kept) override;
  // Local steps, if exchanges may be lossy and the first steps have shown that the network is too
  // slow.
  std::unique_ptr<Strategy> successor() override;
  Traffic traffic() const override;
  ExchangePath path() const override { return exchange_.path(); }

 private:
  void weigh(int64_t step);
  void measure_links(const StrategyState& kept);

  Exchange exchange_;
  std::string links_;  // "hosts 0,0,1: artel-calibration-1 ..."; empty: not measured
  OwnKeeper keeper_;
  bool stepped_ = false;
  double computing_ = 0;  // seconds of the last step
  // While it may still choose to exchange less: what the steps so far have cost.
  bool weighs_ = false;
  bool warm_ = false;
  int64_t measured_ = 0;  // steps since it began to measure, or to warm up
  Clock::time_point measured_from_ = Clock::now();
  StepCost cost_;
  Exchange::Traffic traffic_before_;
  Economy economy_;
};

Synchronous::Synchronous(const Fit& fit)
    : Strategy(fit),
      exchange_(fit.cluster.membership(), exchange_options(fit.options), fit.timeline),
      keeper_(fit, fmt::format("compress \"{}\"", fit.options_of<PackingOptions>().compress)),
      weighs_(may_choose_local_steps({fit.cluster, fit.options, fit.kept})) {
  adds_gradients_ = !exchange_.lossy();
}

StrategyState Synchronous::state() const {
  StrategyState state;
  keeper_.add_to(state);
  if (!links_.empty()) state.values[kLinks] = links_;
  return state;
}

void Synchronous::restore(const StrategyState& kept) {
  if (fit_.group() && exchange_.chooses_by_links()) measure_links(kept);
  if (!fit_.group() || !exchange_.lossy()) return;
  if (const auto own = keeper_.restore(kept))
    exchange_.set_state(*own, fit_.stepper->buckets(fit_.batch_size));
}

// The algorithm of a fast reduction decides about bits. It is chosen by measured links, which are
// the same on all workers, recorded with the run, and used again when it is resumed with the
// same layout of workers on hosts.
void Synchronous::measure_links(const StrategyState& kept) {
  comm::Group& group = *fit_.group();
  const std::string layout = fmt::format("hosts {}: ", fmt::join(group.host_numbers(), ","));
  const auto found = kept.values.find(kLinks);
  if (found != kept.values.end() && found->second.starts_with(layout)) {
    links_ = found->second;
    group.set_calibration(comm::Calibration::from_text(links_.substr(layout.size())));
    return;
  }
  const comm::Calibration measured = comm::calibrate(group);
  links_ = layout + measured.to_text();
  // What is written is what counts.
  group.set_calibration(comm::Calibration::from_text(measured.to_text()));
  if (fit_.cluster.rank() == 0)
    log(LogLevel::info, "measured links: {}/s and {} between hosts, {}/s and {} inside",
        format_bytes(measured.between.bandwidth), format_duration(measured.between.latency),
        format_bytes(measured.inside.bandwidth), format_duration(measured.inside.latency));
}

Strategy::Outcome Synchronous::step(const data::Batch& batch, const StepOptions& options) {
  const std::vector<Bucket>& buckets = fit_.stepper->buckets(batch.total);
  exchange_.begin_step(options.number, buckets, fit_.division->layout());
  // Without lanes it listens, to the last bucket when weights may change: that counts as its own.
  const bool listens = fit_.division->own().size() == 0;
  const Memory sums = listens ? fit_.stepper->memory_without_lanes() : Memory();
  const auto last = static_cast<int>(buckets.size()) - 1;
  for (int b = 0; listens && b < last; ++b) exchange_.listen(b, buckets[b], sums);
  computing_ = compute(batch, options, {0, fit_.lanes},
                       [&](int bucket, const std::vector<Memory>& partials) {
                         exchange_.start(bucket, buckets[bucket], partials);
                       });
  if (listens) exchange_.listen(last, buckets[last], sums);
  const StepStatistics statistics =
      fit_.stepper->read_statistics(exchange_.wait(0).floats(), options.number);
  update(options, batch.total, statistics.gradient_scale(), fit_.lanes,
         [&](int bucket) { return exchange_.wait(bucket); });
  stepped_ = true;
  Outcome outcome = outcome_together(statistics, batch);
  outcome.noise = noise_;
  return outcome;
}

void Synchronous::after_step(int64_t step) {
  if (weighs_) weigh(step);
  const bool balances = !exchange_.lossy() && !economy_.any() && fit_.cluster.size() > 1;
  if (balances && step % Division::kBalanceEvery == 0) fit_.division->balance(step);
}

void Synchronous::settle(int64_t step, const Pause& pause) {
  if (!fit_.group() || !exchange_.lossy() || !stepped_) return;
  keeper_.keep(step, [&] { return exchange_.state(); });
  if (fit_.saves || pause.ends) keeper_.gather(step);
}

// After the first steps. All workers learn the largest costs and times, so that they end measuring
// after the same step and make the same choice.
void Synchronous::weigh(int64_t step) {
  cost_.computing += computing_;
  ++measured_;
  const Exchange::Traffic& traffic = exchange_.traffic();
  std::array costs = {cost_.computing, traffic.waited_seconds - traffic_before_.waited_seconds,
                      traffic.wire_seconds - traffic_before_.wire_seconds,
                      seconds_between(measured_from_, Clock::now())};
  fit_.group()->all_reduce(std::as_writable_bytes(std::span(costs)), comm::ElementType::f64,
                           comm::ReductionKind::max, {.label = "cost of steps"});
  const double seconds = costs[3];
  if (measured_ < (warm_ ? kMeasuredSteps : kWarmUpSteps) &&
      seconds < (warm_ ? kMeasuredSeconds : kWarmUpSeconds))
    return;
  if (warm_) {
    weighs_ = false;
    cost_ = {costs[0], costs[1], costs[2]};
    economy_ = choose_economy(cost_, fit_.last_step - step);
    return;
  }
  warm_ = true;
  measured_ = 0;
  cost_ = {};
  traffic_before_ = traffic;
  measured_from_ = Clock::now();
}

std::unique_ptr<Strategy> Synchronous::successor() {
  if (!economy_.any()) return nullptr;
  if (fit_.cluster.rank() == 0)
    log(LogLevel::info,
        "the network costs {:.0f} % of computing: averaging weights every {} steps{}{}",
        100 * cost_.waiting / cost_.computing, economy_.local_steps,
        economy_.compress.empty() ? "" : ", packed by ", economy_.compress);
  // A run that is resumed from here begins in the same way.
  fit_.division->set(comm::LaneLayout::even(fit_.lanes, fit_.cluster.size()));
  return std::make_unique<LocalSteps>(fit_, economy_,
                                      cost_.computing / static_cast<double>(measured_), traffic());
}

Strategy::Traffic Synchronous::traffic() const {
  const Exchange::Traffic& traffic = exchange_.traffic();
  return {traffic.waited_seconds, traffic.wire_seconds};
}

}  // namespace

std::string reduction_of(const TrainerOptions& options) {
  const std::string& asked = options.strategy_options.of<SynchronousOptions>().reduction;
  if (asked != "auto") return asked;
  const bool sharded = options.strategy_options.of<ShardingOptions>().any();
  return has_own_order(options.strategy) && !sharded ? "fast" : "exact";
}

void SynchronousOptions::visit(KeyVisitor& field) {
  field({.name = "cluster.reduction",
         .help = "`exact`: the same bits on any number of workers; `fast`: in the order of the "
                 "strategy, which depends on that number; `auto`: `fast` with the strategies "
                 "`ring`, `tree`, `halving` and `hierarchical`, otherwise `exact`.",
         .choices = {"auto", "exact", "fast"}},
        reduction);
  field({.name = "cluster.coordinators",
         .help = "Workers that sum for the others, with the strategy `coordinator`.",
         .least = 1,
         .with = {"coordinator"}},
        coordinators);
}

StrategyKind synchronous_kind() {
  return {
      .title = "In step",
      .help =
          "Each step is one update with the sum of all workers' gradients. The name says how "
          "the sum is formed; `auto` and `allreduce` (always exact) pick the fastest way for "
          "the machines at hand.",
      .names = exchange_names(),
      .visit_keys =
          keys_of<SynchronousOptions, PackingOptions, EconomyOptions, ShardsOptions, MeshOptions>(),
      .check = check_reduction,
      .compared_as = exchange_names(),
      .compared_settings =
          [](const std::string& name) {
            return std::vector<std::string>{"cluster.strategy=" + name, "cluster.reduction=auto"};
          },
      .adds_exactly =
          [](const TrainerOptions& options) {
            const ExchangeOptions ways = exchange_options(options);
            return ways.reduction == "exact" && ways.strategy != "coordinator" &&
                   (ways.compress.empty() || ways.compress == "none");
          },
      .make = [](const Fit& fit) { return std::make_unique<Synchronous>(fit); }};
}

}  // namespace artel
