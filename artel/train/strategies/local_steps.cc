#include "artel/train/strategies/local_steps.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/train/step/exchange.h"
#include "artel/train/step/worker_sum.h"
#include "artel/train/strategies/local_steps_strategy.h"
#include "artel/train/strategies/shared_options.h"

namespace artel {
namespace {

constexpr int kMeasuredMeetings = 3;

std::string kind_of(const ReducedExchange& reduced) {
  return fmt::format("compress \"{}\", {} local steps", reduced.compress, reduced.local_steps);
}

// Names in the strategy's state.
constexpr const char *kOwner = "local steps", *kLocalSteps = "local_steps", *kCompress = "compress",
                     *kOuterVelocity = "outer velocity/";

// The earlier choice of "auto".
ReducedExchange chosen_exchange(const StrategyStates& kept) {
  const auto own = kept.find(kOwner);
  if (own == kept.end() || !own->second.values.contains(kLocalSteps)) return {};
  return {std::stoll(own->second.values.at(kLocalSteps)), own->second.values.at(kCompress)};
}

}  // namespace

void LocalStepsOptions::visit(KeyVisitor& field) {
  field({.name = "cluster.local_steps",
         .help = "Steps between averages of the workers' weights. 1: sum gradients in every step.",
         .least = 1},
        local_steps);
  field({.name = "cluster.outer_momentum",
         .help = "With `local_steps`: momentum of the averaged weights. 0: the plain average.",
         .most = 0.999},
        outer_momentum);
  field({.name = "cluster.outer_lr",
         .help = "With `local_steps`: step size towards the average; DiLoCo uses 0.7 with an "
                 "`outer_momentum` of 0.9.",
         .least = 1e-6},
        outer_learning_rate);
}

// A strategy without a name: weights are averaged whichever algorithm would add sums.
StrategyKind local_steps_kind() {
  return {
      .title = "Local steps",
      .help =
          "With any of these names and `local_steps` above 1, workers train separately and "
          "continue from the average of their weights every `local_steps` steps.",
      .names = {},
      .takes_batches = false,
      .visit_keys = keys_of<LocalStepsOptions, PackingOptions, AllowLossyOptions, ShardsOptions>(),
      .check =
          [](const Situation& now) {
            const auto& own = now.options.strategy_options.of<LocalStepsOptions>();
            require(own.local_steps == 1 || now.cluster.servers() == 0, ErrorKind::invalid_argument,
                    "cluster.local_steps: got {} with parameter servers, expected 1",
                    own.local_steps);
          },
      .wanted =
          [](const Situation& now) {
            const std::vector<std::string> ways = exchange_names();
            const auto& own = now.options.strategy_options.of<LocalStepsOptions>();
            return now.cluster.size() > 1 && now.cluster.servers() == 0 &&
                   std::find(ways.begin(), ways.end(), now.options.strategy) != ways.end() &&
                   (chosen_exchange(now.kept).any() || own.local_steps > 1);
          },
      .may_follow = may_choose_local_steps,
      .compared_as = {"local STEPS"},
      .compared_settings =
          [](const std::string& words) {
            const size_t blank = std::min(words.find(' '), words.size());
            return std::vector{"cluster.local_steps=" +
                               std::string(trim(std::string_view(words).substr(blank)))};
          },
      .make =
          [](const FitView& fit) {
            const ReducedExchange chosen = chosen_exchange(fit.kept);
            const ReducedExchange asked = {fit.options_of<LocalStepsOptions>().local_steps,
                                           fit.options_of<PackingOptions>().compress};
            return std::make_unique<LocalSteps>(fit, chosen.any() ? chosen : asked, chosen.any());
          }};
}

bool may_choose_local_steps(const Situation& now) {
  const StrategyOptions& options = now.options.strategy_options;
  const std::string& compress = options.of<PackingOptions>().compress;
  return now.options.strategy == "auto" && options.of<AllowLossyOptions>().allow_lossy &&
         (compress.empty() || compress == "none") && now.cluster.servers() == 0 &&
         now.cluster.size() > 1;
}

LocalSteps::LocalSteps(const FitView& fit, const ReducedExchange& reduced, double computing,
                       const Traffic& traffic)
    : Strategy(fit, {.computes_first = true, .state_name = kOwner, .has_met = true}),
      reduced_(reduced),
      computing_(computing),
      velocity_(fit.options_of<LocalStepsOptions>().outer_momentum > 0
                    ? Parameters(fit.parameters.entries())
                    : Parameters()),
      averaging_(
          fit.cluster.membership(), fit.parameters, velocity_,
          [&fit](const std::string& name) { return fit.trained(name); },
          AveragingOptions{.momentum = fit.options_of<LocalStepsOptions>().outer_momentum,
                           .learning_rate = fit.options_of<LocalStepsOptions>().outer_learning_rate,
                           .compress = reduced.compress,
                           .seed = fit.options.seed}),
      own_states_(fit, kind_of(reduced)),
      traffic_(traffic),
      stepped_(true),
      unjudged_meetings_(kMeasuredMeetings) {}

LocalSteps::LocalSteps(const FitView& fit, const ReducedExchange& reduced, bool chosen)
    : LocalSteps(fit, reduced, 0, {}) {
  chosen_ = chosen;
  stepped_ = traits_.has_met = false;
  unjudged_meetings_ = 0;
}

ExchangePath LocalSteps::path() const {
  return {.algorithm = fmt::format("average every {} steps{}{}", reduced_.local_steps,
                                   reduced_.compress.empty() ? "" : " by ", reduced_.compress),
          .reduction = "local",
          .decided_by = fmt::format("cluster.local_steps = {}", reduced_.local_steps)};
}

StrategyState LocalSteps::state() const {
  StrategyState state;
  if (chosen_)
    state.values = {{kLocalSteps, std::to_string(reduced_.local_steps)},
                    {kCompress, reduced_.compress}};
  for (const ParameterEntry& entry : velocity_.entries())
    if (!entry.is_state)
      state.tensors.push_back({kOuterVelocity + entry.name, velocity_.get(entry.name)});
  own_states_.add_to(state);
  return state;
}

void LocalSteps::restore(const StrategyState& kept) {
  const std::string prefix = kOuterVelocity;
  if (!velocity_.entries().empty())
    for (const auto& [name, tensor] : kept.tensors)
      if (name.starts_with(prefix)) velocity_.set(name.substr(prefix.size()), tensor);
  const auto own = own_states_.restore(kept);
  if (!own) return;
  averaging_.set_state(*own);
  const std::vector<std::span<float>> blocks = fit_.stepper->update().memory();
  for (size_t i = 0; i < blocks.size(); ++i)
    if (const auto found = own->find(fmt::format("optimizer {}", i)); found != own->end())
      std::copy(found->second.begin(), found->second.end(), blocks[i].begin());
}

Strategy::Outcome LocalSteps::step(const data::Batch& batch, const StepOptions& options) {
  const comm::LaneRange lanes = fit_.lane_partition->own();
  const Memory sums = compute_sums(batch, options, lanes);
  const StepStatistics statistics = fit_.stepper->read_statistics(sums.floats(), options.number);
  const double share = fit_.lane_partition->own_share(batch.total);
  // false: this worker has no part of the batch
  if (share > 0)
    update(options, batch.total, statistics.gradient_scale() / share, lanes.size(),
           [&](int) { return sums; });
  stepped_ = true;
  traits_.has_met = false;
  since_.samples += batch.total;
  since_.loss += statistics.weighted_loss;
  since_.weight = since_.weight.value_or(0) + statistics.weight;
  since_.metrics.resize(statistics.sums.size());
  for (size_t i = 0; i < since_.metrics.size(); ++i) since_.metrics[i] += statistics.sums[i];
  Outcome outcome = outcome_of(statistics);
  outcome.meet = [this, step = options.number] { return meet(step); };
  return outcome;
}

// True if workers average after this step even if the run continues.
bool LocalSteps::meets_anyway(int64_t step) const {
  return step % reduced_.local_steps == 0 || fit_.saves_after(step);
}

// Averages where other workers need the weights: for a test, a checkpoint, or the end.
std::optional<Strategy::Counts> LocalSteps::meet(int64_t step) {
  if (!meets_anyway(step) && step < fit_.last_step) return {};
  if (!meets_anyway(step)) keep(step, true);
  comm::Group& group = *fit_.group();
  const Timeline::Scope scope(fit_.timeline, "wire", Timeline::kMain, "average");
  const Clock::time_point before = Clock::now();
  averaging_.meet(static_cast<float>(fit_.lane_partition->own_share(fit_.batch_size)), step);
  std::vector<double> sums = since_.metrics;
  sums.insert(sums.end(), {since_.loss, since_.weight.value_or(0), fit_.stop ? 1.0 : 0.0,
                           fit_.trace > 0 ? 1.0 : 0.0, fit_.leaves ? 1.0 : 0.0});
  add_over_workers(group, std::as_writable_bytes(std::span(sums)), comm::ElementType::f64,
                   "statistics");
  Counts counts = {.samples = since_.samples,
                   .loss = sums.end()[-5],
                   .weight = sums.end()[-4],
                   .metrics = {sums.begin(), sums.end() - 5},
                   .stop = sums.end()[-3] > 0,
                   .trace = sums.end()[-2] > 0,
                   .leaves = sums.back() > 0};
  since_ = {};
  traits_.has_met = true;
  const double seconds = seconds_between(before, Clock::now());
  traffic_.waited_seconds += seconds;
  if (unjudged_meetings_ > 0) judge_meeting(seconds);
  return counts;
}

// The last worker to arrive measures the cost of an average; the others have waited for it.
void LocalSteps::judge_meeting(double seconds) {
  meeting_cost_ = std::min(meeting_cost_, seconds);
  if (--unjudged_meetings_ > 0) return;
  fit_.group()->all_reduce(std::as_writable_bytes(std::span(&meeting_cost_, 1)),
                           comm::ElementType::f64, comm::ReductionKind::min,
                           {.label = "cost of a meeting"});
  const ReducedExchange rarer =
      stretched(reduced_, meeting_cost_, computing_, fit_.last_step - fit_.step);
  if (rarer.local_steps == reduced_.local_steps) return;
  reduced_ = rarer;
  own_states_.set_kind(kind_of(reduced_));
  if (fit_.cluster.rank() == 0)
    log(LogLevel::info, "an average takes {:.0f} ms: averaging weights every {} steps",
        1000 * meeting_cost_, reduced_.local_steps);
}

void LocalSteps::keep(int64_t step, bool between) {
  if (!stepped_) return;
  own_states_.keep(step, [&] {
    OwnState own = averaging_.state(between);
    if (!between) return own;
    const std::vector<std::span<float>> blocks = fit_.stepper->update().memory();
    for (size_t i = 0; i < blocks.size(); ++i)
      own[fmt::format("optimizer {}", i)].assign(blocks[i].begin(), blocks[i].end());
    return own;
  });
}

std::vector<float> LocalSteps::mean_over_workers(std::span<const float> values) {
  const auto share = static_cast<float>(fit_.lane_partition->own_share(fit_.batch_size));
  std::vector<float> mean(values.begin(), values.end());
  for (float& value : mean) value *= share;
  add_over_workers(*fit_.group(), std::as_writable_bytes(std::span(mean)), comm::ElementType::f32,
                   "optimizer");
  return mean;
}

// Averages are the same on all workers only as a mean over them, like weights; checkpoints get the
// mean. Each worker's own values return after the test.
void LocalSteps::with_averages(const std::function<void()>& test) {
  if (settled_ == fit_.step) return Strategy::with_averages(test);
  const std::vector<Update::Averaged> averages = fit_.stepper->update().averages();
  std::vector<std::vector<float>> values;
  for (const Update::Averaged& each : averages) values.push_back(mean_over_workers(each.average));
  const auto swap = [&] {
    for (size_t i = 0; i < averages.size(); ++i)
      std::swap_ranges(values[i].begin(), values[i].end(), averages[i].average.begin());
  };
  swap();
  try {
    Strategy::with_averages(test);
  } catch (...) {
    swap();
    throw;
  }
  swap();
}

void LocalSteps::settle(int64_t step, const Pause& pause) {
  if (!pause.regular) keep(step, true);
  if (settled_ != step) {
    // Averages a copy, so that this worker's own state survives if the group breaks.
    const std::vector<std::span<float>> blocks = fit_.stepper->update().memory();
    std::vector<std::vector<float>> averages;
    for (const std::span<float> block : blocks) averages.push_back(mean_over_workers(block));
    for (size_t i = 0; i < blocks.size(); ++i)
      std::copy(averages[i].begin(), averages[i].end(), blocks[i].begin());
    settled_ = step;
  }
  keep(step, false);
  if (stepped_ && (fit_.saves || pause.ends)) own_states_.gather(step);
}

}  // namespace artel
