#include "artel/train/strategies/local_steps.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/train/exchange.h"
#include "artel/train/strategies/local_steps_strategy.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/worker_sum.h"

namespace artel {
namespace {

constexpr int kMeasuredMeetings = 3;

std::string kind_of(const Economy& economy) {
  return fmt::format("compress \"{}\", {} local steps", economy.compress, economy.local_steps);
}

// Names in its state.
constexpr const char *kOwner = "local steps", *kLocalSteps = "local_steps", *kCompress = "compress",
                     *kOuterVelocity = "outer velocity/";

// What "auto" has chosen before.
Economy chosen_economy(const StrategyStates& kept) {
  const auto own = kept.find(kOwner);
  if (own == kept.end() || !own->second.values.contains(kLocalSteps)) return {};
  return {std::stoll(own->second.values.at(kLocalSteps)), own->second.values.at(kCompress)};
}

}  // namespace

void LocalStepsOptions::visit(KeyVisitor& field) {
  field(
      {.name = "cluster.local_steps",
       .help =
           "Steps between averages of the workers' weights. 1: gradients are summed at every step.",
       .least = 1},
      local_steps);
  field({.name = "cluster.outer_momentum",
         .help = "With `local_steps`: momentum of the averaged weights. 0: the plain average.",
         .most = 0.999},
        outer_momentum);
  field({.name = "cluster.outer_lr",
         .help = "With `local_steps`: how far to move towards the average; DiLoCo uses 0.7 with an "
                 "`outer_momentum` of 0.9.",
         .least = 1e-6},
        outer_learning_rate);
}

// It has no name of its own: weights are averaged whichever way sums would take.
StrategyKind local_steps_kind() {
  return {
      .title = "Local steps",
      .help =
          "With any of these names and `local_steps` above 1, workers train separately and "
          "continue from the average of their weights every `local_steps` steps.",
      .names = {},
      .takes_batches = false,
      .visit_keys = keys_of<LocalStepsOptions, PackingOptions, EconomyOptions, ShardsOptions>(),
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
                   (chosen_economy(now.kept).any() || own.local_steps > 1);
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
          [](const Fit& fit) {
            const Economy chosen = chosen_economy(fit.kept);
            const Economy asked = {fit.options_of<LocalStepsOptions>().local_steps,
                                   fit.options_of<PackingOptions>().compress};
            return std::make_unique<LocalSteps>(fit, chosen.any() ? chosen : asked, chosen.any());
          }};
}

bool may_choose_local_steps(const Situation& now) {
  const StrategyOptions& options = now.options.strategy_options;
  const std::string& compress = options.of<PackingOptions>().compress;
  return now.options.strategy == "auto" && options.of<EconomyOptions>().allow_lossy &&
         (compress.empty() || compress == "none") && now.cluster.servers() == 0 &&
         now.cluster.size() > 1;
}

LocalSteps::LocalSteps(const Fit& fit, const Economy& economy, double computing,
                       const Traffic& traffic)
    : Strategy(fit),
      economy_(economy),
      computing_(computing),
      velocity_(fit.options_of<LocalStepsOptions>().outer_momentum > 0
                    ? Parameters(fit.parameters.entries())
                    : Parameters()),
      averaging_(
          fit.cluster.membership(), fit.parameters, velocity_,
          [&fit](const std::string& name) { return fit.trained(name); },
          AveragingOptions{.momentum = fit.options_of<LocalStepsOptions>().outer_momentum,
                           .learning_rate = fit.options_of<LocalStepsOptions>().outer_learning_rate,
                           .compress = economy.compress,
                           .seed = fit.options.seed}),
      keeper_(fit, kind_of(economy)),
      traffic_(traffic),
      stepped_(true),
      unjudged_meetings_(kMeasuredMeetings) {}

LocalSteps::LocalSteps(const Fit& fit, const Economy& economy, bool chosen)
    : LocalSteps(fit, economy, 0, {}) {
  chosen_ = chosen;
  stepped_ = false;
  unjudged_meetings_ = 0;
}

std::string LocalSteps::kept_as() const { return kOwner; }

ExchangePath LocalSteps::path() const {
  return {.algorithm = fmt::format("average every {} steps{}{}", economy_.local_steps,
                                   economy_.compress.empty() ? "" : " by ", economy_.compress),
          .reduction = "local"};
}

StrategyState LocalSteps::state() const {
  StrategyState state;
  if (chosen_)
    state.values = {{kLocalSteps, std::to_string(economy_.local_steps)},
                    {kCompress, economy_.compress}};
  for (const ParameterEntry& entry : velocity_.entries())
    if (!entry.is_state)
      state.tensors.push_back({kOuterVelocity + entry.name, velocity_.get(entry.name)});
  keeper_.add_to(state);
  return state;
}

void LocalSteps::restore(const StrategyState& kept) {
  const std::string prefix = kOuterVelocity;
  if (!velocity_.entries().empty())
    for (const auto& [name, tensor] : kept.tensors)
      if (name.starts_with(prefix)) velocity_.set(name.substr(prefix.size()), tensor);
  const auto own = keeper_.restore(kept);
  if (!own) return;
  averaging_.set_state(*own);
  const std::vector<std::span<float>> blocks = fit_.stepper->update().memory();
  for (size_t i = 0; i < blocks.size(); ++i)
    if (const auto found = own->find(fmt::format("optimizer {}", i)); found != own->end())
      std::copy(found->second.begin(), found->second.end(), blocks[i].begin());
}

Strategy::Outcome LocalSteps::step(const data::Batch& batch, const StepOptions& options) {
  const comm::LaneRange lanes = fit_.division->own();
  const Memory sums = compute_sums(batch, options, lanes);
  const StepStatistics statistics = fit_.stepper->read_statistics(sums.floats(), options.number);
  const double share = fit_.division->own_share(batch.total);
  // Otherwise this worker has no part of the batch.
  if (share > 0)
    update(options, batch.total, statistics.gradient_scale() / share, lanes.size(),
           [&](int) { return sums; });
  stepped_ = true;
  since_.samples += batch.total;
  since_.loss += statistics.weighted_loss;
  since_.weight = since_.weight.value_or(0) + statistics.weight;
  since_.metrics.resize(statistics.sums.size());
  for (size_t i = 0; i < since_.metrics.size(); ++i) since_.metrics[i] += statistics.sums[i];
  return outcome_of(statistics);
}

// Whether workers meet after this step even if the run continues.
bool LocalSteps::meets_anyway(int64_t step) const {
  return step % economy_.local_steps == 0 || fit_.saves_after(step);
}

// Wherever the weights matter to others: for a test, a checkpoint or the end.
std::optional<Strategy::Counts> LocalSteps::meet(int64_t step) {
  if (!meets_anyway(step) && step < fit_.last_step) return {};
  if (!meets_anyway(step)) keep(step, true);
  comm::Group& group = *fit_.group();
  const Timeline::Scope scope(fit_.timeline, "wire", Timeline::kMain, "average");
  const Clock::time_point before = Clock::now();
  averaging_.meet(static_cast<float>(fit_.division->own_share(fit_.batch_size)), step);
  std::vector<double> sums = since_.metrics;
  sums.insert(sums.end(), {since_.loss, since_.weight.value_or(0), fit_.stop ? 1.0 : 0.0,
                           fit_.trace > 0 ? 1.0 : 0.0});
  add_over_workers(group, std::as_writable_bytes(std::span(sums)), comm::ElementType::f64,
                   "statistics");
  Counts counts = {.samples = since_.samples,
                   .loss = sums.end()[-4],
                   .weight = sums.end()[-3],
                   .metrics = {sums.begin(), sums.end() - 4},
                   .stop = sums.end()[-2] > 0,
                   .trace = sums.back() > 0};
  since_ = {};
  const double seconds = seconds_between(before, Clock::now());
  traffic_.waited_seconds += seconds;
  if (unjudged_meetings_ > 0) judge_meeting(seconds);
  return counts;
}

// Whoever comes last sees what a meeting costs; the others have waited for it.
void LocalSteps::judge_meeting(double seconds) {
  meeting_cost_ = std::min(meeting_cost_, seconds);
  if (--unjudged_meetings_ > 0) return;
  fit_.group()->all_reduce(std::as_writable_bytes(std::span(&meeting_cost_, 1)),
                           comm::ElementType::f64, comm::ReductionKind::min,
                           {.label = "cost of a meeting"});
  const Economy rarer = stretched(economy_, meeting_cost_, computing_, fit_.last_step - fit_.step);
  if (rarer.local_steps == economy_.local_steps) return;
  economy_ = rarer;
  keeper_.set_kind(kind_of(economy_));
  if (fit_.cluster.rank() == 0)
    log(LogLevel::info, "a meeting takes {:.0f} ms: averaging weights every {} steps",
        1000 * meeting_cost_, economy_.local_steps);
}

void LocalSteps::keep(int64_t step, bool between) {
  if (!stepped_) return;
  keeper_.keep(step, [&] {
    OwnState own = averaging_.state(between);
    if (!between) return own;
    const std::vector<std::span<float>> blocks = fit_.stepper->update().memory();
    for (size_t i = 0; i < blocks.size(); ++i)
      own[fmt::format("optimizer {}", i)].assign(blocks[i].begin(), blocks[i].end());
    return own;
  });
}

std::vector<float> LocalSteps::mean_over_workers(std::span<const float> values) {
  const auto share = static_cast<float>(fit_.division->own_share(fit_.batch_size));
  std::vector<float> mean(values.begin(), values.end());
  for (float& value : mean) value *= share;
  add_over_workers(*fit_.group(), std::as_writable_bytes(std::span(mean)), comm::ElementType::f32,
                   "optimizer");
  return mean;
}

// Like weights, averages are the same on all workers only as a mean over them, which is what a
// checkpoint gets. Each worker's own come back after the test.
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
    // Averaged in a copy: a group that breaks meanwhile leaves this worker's own state.
    const std::vector<std::span<float>> blocks = fit_.stepper->update().memory();
    std::vector<std::vector<float>> averages;
    for (const std::span<float> block : blocks) averages.push_back(mean_over_workers(block));
    for (size_t i = 0; i < blocks.size(); ++i)
      std::copy(averages[i].begin(), averages[i].end(), blocks[i].begin());
    settled_ = step;
  }
  keep(step, false);
  if (stepped_ && (fit_.saves || pause.ends)) keeper_.gather(step);
}

}  // namespace artel
