#include "artel/train/strategies/synchronous.h"

#include <fmt/format.h>

#include <array>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/comm/collectives/benchmark.h"
#include "artel/train/step/exchange.h"
#include "artel/train/step/reduced_exchange.h"
#include "artel/train/strategies/local_steps_strategy.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/own_state_store.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategy.h"

namespace artel {
namespace {

// The network is judged by a few steps after the first ones, which are slower than usual. Long
// steps are conclusive after a second. A single step is conclusive if even the slowest worker waits
// for half of its computing time: others may wait for it, but it waits for the network.
constexpr int64_t kWarmUpSteps = 4, kMeasuredSteps = 12;
constexpr double kWarmUpSeconds = 0.1, kMeasuredSeconds = 1;
constexpr double kClearlyTooSlow = 0.5;

constexpr const char* kLinks = "links";

ExchangeOptions exchange_options(const TrainerOptions& options) {
  const auto& own = options.strategy_options.of<SynchronousOptions>();
  return {.strategy = options.strategy,
          .reduction = reduction_of(options),
          .compress = options.strategy_options.of<PackingOptions>().compress,
          .coordinators = static_cast<int>(own.coordinators),
          .seed = options.seed};
}

// Throws if the canonical order is requested with an algorithm that cannot use it.
void check_reduction(const Situation& now) {
  const std::string& strategy = now.options.strategy;
  const StrategyOptions& options = now.options.strategy_options;
  require(
      options.of<SynchronousOptions>().reduction != "exact" || can_be_exact(strategy) ||
          options.of<ShardingOptions>().any(),
      ErrorKind::invalid_argument,
      "cluster.reduction: got \"exact\" with cluster.strategy = \"{}\", which adds in an order "
      "that depends on the number of workers; try cluster.strategy = \"auto\" (also to resume a "
      "run of an earlier version with the same bits), or cluster.reduction = \"fast\"",
      strategy);
}

class Synchronous final : public Strategy {
 public:
  explicit Synchronous(const FitView& fit);

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  void after_step(int64_t step) override;
  void settle(int64_t step, const Pause& pause) override;
  // The residuals of a lossy codec on each worker, and the measured links by which a fast reduction
  // has chosen its algorithms.
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
  OwnStateStore own_states_;
  bool stepped_ = false;
  double computing_ = 0;  // seconds of the last step
  // While local steps may still be chosen: the cost of the steps so far.
  bool weighs_ = false;
  bool warm_ = false;
  int64_t measured_ = 0;  // steps since measuring or warming up began
  Clock::time_point measured_from_ = Clock::now();
  StepCost cost_;
  Exchange::Traffic traffic_before_;
  ReducedExchange reduced_;
};

Synchronous::Synchronous(const FitView& fit)
    : Strategy(fit, {.computes_first = true, .in_step = true}),
      exchange_(fit.cluster.membership(), exchange_options(fit.options), fit.timeline),
      own_states_(fit, fmt::format("compress \"{}\"", fit.options_of<PackingOptions>().compress)),
      weighs_(fit.lane_partition->all_have_lanes() &&
              may_choose_local_steps({fit.cluster, fit.options, fit.kept})) {
  adds_gradients_ = !exchange_.lossy();
}

StrategyState Synchronous::state() const {
  StrategyState state;
  own_states_.add_to(state);
  if (!links_.empty()) state.values[kLinks] = links_;
  return state;
}

void Synchronous::restore(const StrategyState& kept) {
  if (fit_.group() && exchange_.chooses_by_links()) measure_links(kept);
  if (!fit_.group() || !exchange_.lossy()) return;
  if (const auto own = own_states_.restore(kept))
    exchange_.set_state(*own, fit_.stepper->buckets(fit_.batch_size));
}

// The algorithm of a fast reduction determines bits. It is chosen by measured links, which are
// equal on all workers, recorded with the run, and reused when the run is resumed with the same
// layout of workers on hosts.
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
  // The recorded values count.
  group.set_calibration(comm::Calibration::from_text(measured.to_text()));
  if (fit_.cluster.rank() == 0)
    log(LogLevel::info, "measured links: {}/s and {} between hosts, {}/s and {} inside",
        format_bytes(measured.between.bandwidth), format_duration(measured.between.latency),
        format_bytes(measured.inside.bandwidth), format_duration(measured.inside.latency));
}

Strategy::Outcome Synchronous::step(const data::Batch& batch, const StepOptions& options) {
  const std::vector<Bucket>& buckets = fit_.stepper->buckets(batch.total);
  exchange_.begin_step(options.number, buckets, fit_.lane_partition->layout());
  computing_ = compute(batch, options, {0, fit_.lanes},
                       [&](int bucket, const std::vector<Memory>& partials) {
                         exchange_.start(bucket, buckets[bucket], partials);
                       });
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
  const bool balances = !exchange_.lossy() && !reduced_.any() && fit_.cluster.size() > 1;
  if (balances && step % LanePartition::kBalanceEvery == 0) fit_.lane_partition->balance(step);
}

void Synchronous::settle(int64_t step, const Pause& pause) {
  if (!fit_.group() || !exchange_.lossy() || !stepped_) return;
  own_states_.keep(step, [&] { return exchange_.state(); });
  if (fit_.saves || pause.ends) own_states_.gather(step);
}

// Called after the first steps. All workers learn the largest costs and times, so that they end
// measuring after the same step and make the same choice.
void Synchronous::weigh(int64_t step) {
  cost_.computing += computing_;
  ++measured_;
  const Exchange::Traffic& traffic = exchange_.traffic();
  std::array costs = {cost_.computing, traffic.waited_seconds - traffic_before_.waited_seconds,
                      traffic.wire_seconds - traffic_before_.wire_seconds,
                      seconds_between(measured_from_, Clock::now()),
                      -(traffic.waited_seconds - traffic_before_.waited_seconds)};
  fit_.group()->all_reduce(std::as_writable_bytes(std::span(costs)), comm::ElementType::f64,
                           comm::ReductionKind::max, {.label = "cost of steps"});
  const double seconds = costs[3];
  const bool clear = -costs[4] > kClearlyTooSlow * costs[0];
  if (!clear && measured_ < (warm_ ? kMeasuredSteps : kWarmUpSteps) &&
      seconds < (warm_ ? kMeasuredSeconds : kWarmUpSeconds))
    return;
  if (warm_ || clear) {
    weighs_ = false;
    cost_ = {costs[0], costs[1], costs[2]};
    reduced_ = choose_reduced_exchange(cost_, fit_.last_step - step);
    return;
  }
  warm_ = true;
  measured_ = 0;
  cost_ = {};
  traffic_before_ = traffic;
  measured_from_ = Clock::now();
}

std::unique_ptr<Strategy> Synchronous::successor() {
  if (!reduced_.any()) return nullptr;
  if (fit_.cluster.rank() == 0)
    log(LogLevel::info,
        "communication takes {:.0f} % of the computing time; averaging weights every {} steps from "
        "now on{}{}",
        100 * cost_.waiting / cost_.computing, reduced_.local_steps,
        reduced_.compress.empty() ? "" : ", compressed by ", reduced_.compress);
  // A run resumed from a later checkpoint starts in the same way.
  fit_.lane_partition->set(comm::LaneLayout::even(fit_.lanes, fit_.cluster.size()));
  return std::make_unique<LocalSteps>(fit_, reduced_,
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

std::vector<std::string> replaced_settings(const TrainerOptions& options,
                                           const ExchangePath& path) {
  if (path.decided_by.empty()) return {};
  const std::string& reduction = options.strategy_options.of<SynchronousOptions>().reduction;
  std::vector<std::string> lines;
  const auto add = [&](const char* key, const std::string& value) {
    lines.push_back(fmt::format("{} = \"{}\" has no effect with {}; this run uses {}", key, value,
                                path.decided_by, to_string(path)));
  };
  if (names_algorithm(options.strategy) && path.algorithm != options.strategy)
    add("cluster.strategy", options.strategy);
  if (reduction != "auto" && reduction != path.reduction) add("cluster.reduction", reduction);
  return lines;
}

void SynchronousOptions::visit(KeyVisitor& field) {
  field(
      {.name = "cluster.reduction",
       .help = "`exact`: the same bits on any number of workers; `fast`: the strategy's own order, "
               "which depends on that number; `auto`: `fast` with the strategies "
               "`ring`, `tree`, `halving` and `hierarchical`, otherwise `exact`.",
       .choices = {"auto", "exact", "fast"}},
      reduction);
  field({.name = "cluster.coordinators",
         .help = "With the strategy `coordinator`: number of workers that add up the sums.",
         .least = 1,
         .with = {"coordinator"}},
        coordinators);
}

StrategyKind synchronous_kind() {
  return {.title = "In step",
          .help =
              "Each step is one update with the sum of all workers' gradients. The name selects "
              "the algorithm; `auto` and `allreduce` (always exact) choose the fastest one for the "
              "machines.",
          .names = exchange_names(),
          .visit_keys = keys_of<SynchronousOptions, PackingOptions, AllowLossyOptions,
                                ShardsOptions, MeshOptions>(),
          .check = check_reduction,
          .follows_without_lanes = true,
          .compared_as = exchange_names(),
          .compared_settings =
              [](const std::string& name) {
                return std::vector<std::string>{"cluster.strategy=" + name};
              },
          .adds_exactly =
              [](const TrainerOptions& options) {
                const ExchangeOptions ways = exchange_options(options);
                return ways.reduction == "exact" && ways.strategy != "coordinator" &&
                       (ways.compress.empty() || ways.compress == "none");
              },
          .make = [](const FitView& fit) { return std::make_unique<Synchronous>(fit); }};
}

}  // namespace artel
