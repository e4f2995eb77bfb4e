#include "artel/train/strategies/sharded.h"

#include <algorithm>
#include <numeric>

#include "artel/base/error.h"
#include "artel/train/parts/mesh_axes.h"
#include "artel/train/parts/passing_weights.h"
#include "artel/train/parts/sharded_update.h"
#include "artel/train/step/exchange.h"
#include "artel/train/strategies/divided.h"
#include "artel/train/strategies/local_steps.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategies/synchronous.h"

namespace artel {
namespace {

class Sharded final : public DividedStrategy {
 public:
  explicit Sharded(const FitView& fit);

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  void after_step(int64_t step) override;
  DividedStateTransfer& state_transfer() override { return divided_; }
  Traffic traffic() const override;
  ExchangePath path() const override { return exchange_.path(); }

 private:
  void spread_weights() override;
  KeptRanges updated() const override { return update_.kept(); }

  const ShardingOptions sharding_;
  ShardedUpdate update_;
  Exchange exchange_;
  DividedStateTransfer divided_;
  std::unique_ptr<PassingWeights> passing_;  // if each worker keeps a part of the weights
};

Sharded::Sharded(const FitView& fit)
    : DividedStrategy(fit),
      sharding_(fit.options_of<ShardingOptions>()),
      update_(fit.cluster.membership(), *fit.stepper),
      exchange_(fit.cluster.membership(),
                {.strategy = fit.options.strategy,
                 .seed = fit.options.seed,
                 .shards = &update_.shards(),
                 .frees_sums = sharding_.gradients()},
                fit.timeline),
      divided_(*fit.group(),
               divided_parts(fit.parameters, fit.stepper->update(),
                             sharding_.weights() ? update_.kept() : KeptRanges(), update_.kept())) {
  if (sharding_.weights())
    passing_ = std::make_unique<PassingWeights>(*fit.group(), *fit.stepper, update_,
                                                fit.lane_partition->own().size());
  whole_ = !passing_;
  adds_gradients_ = true;
}

Strategy::Outcome Sharded::step(const data::Batch& batch, const StepOptions& options) {
  Stepper& stepper = *fit_.stepper;
  const std::vector<Bucket>& buckets = stepper.buckets(batch.total);
  exchange_.begin_step(options.number, buckets, fit_.lane_partition->layout());
  if (passing_) {
    if (std::exchange(whole_, false)) divided_.forget_weights();
    passing_->begin_step(batch.total);
  }
  compute(batch, options, {0, fit_.lanes}, [&](int bucket, const std::vector<Memory>& partials) {
    exchange_.start(bucket, buckets[bucket], partials);
  });
  if (passing_) passing_->end_step();
  const StepStatistics statistics =
      stepper.read_statistics(exchange_.wait(0).floats(), options.number);
  Memory total;
  for (int b = 0; b < static_cast<int>(buckets.size()); ++b) total = exchange_.wait(b);
  const Timeline::Scope scope(fit_.timeline, "update", Timeline::kMain, "update");
  Update::Options how = {.step = options.update,
                         .learning_rate = options.learning_rate,
                         .gradient_scale = statistics.gradient_scale(),
                         .lanes = fit_.lanes};
  if (stepper.update().clips() || measures_noise()) {
    const std::vector<double> terms = update_.squares(total);
    const double squares = std::accumulate(terms.begin(), terms.end(), 0.0);
    if (measures_noise()) measure_noise(batch.total, squares, how.gradient_scale);
    if (stepper.update().clips())
      how.gradient_scale *= stepper.update().clip_scale(squares, how.gradient_scale);
    else
      stepper.update().measure_norm(squares, how.gradient_scale);
  }
  // A bucket is sent while the next one is updated, unless weights wait for the next step.
  std::vector<comm::Handle> gathers;
  update_to(options.number, [&] {
    update_.apply(total, how, [&](int bucket) {
      if (passing_) return;
      gathers.push_back(fit_.group()->start(
          [this, bucket](comm::Group& group) { update_.gather_weights(group, bucket); }));
    });
  });
  wait_for_all(gathers);
  Outcome outcome = outcome_together(statistics, batch);
  outcome.noise = noise_;
  return outcome;
}

void Sharded::after_step(int64_t step) {
  DividedStrategy::after_step(step);
  if (!passing_ && step % LanePartition::kBalanceEvery == 0) fit_.lane_partition->balance(step);
}

void Sharded::spread_weights() {
  if (passing_) passing_->stop_sharing();
  for (int b = 0; b < update_.shards().buckets(); ++b) update_.gather_weights(*fit_.group(), b);
}

Strategy::Traffic Sharded::traffic() const {
  return {exchange_.traffic().waited_seconds, exchange_.traffic().wire_seconds};
}

void check_sharding(const Situation& now) {
  const StrategyOptions& options = now.options.strategy_options;
  const std::string& sharding = options.of<ShardingOptions>().sharding;
  if (sharding == "none") return;
  const auto refuse = [&](bool wrong, std::string_view with, std::string_view instead) {
    require(!wrong, ErrorKind::invalid_argument,
            "cluster.sharding: got \"{}\" with {}, expected \"none\"; try that, or {}", sharding,
            with, instead);
  };
  const std::string& compress = options.of<PackingOptions>().compress;
  refuse(!adds_sums(now), fmt::format("the strategy \"{}\"", now.options.strategy),
         "the strategy \"auto\" without parameter servers");
  refuse(now.options.strategy == "coordinator", "the strategy \"coordinator\"",
         "the strategy \"auto\"");
  refuse(!compress.empty() && compress != "none",
         fmt::format("cluster.compress = \"{}\"", compress), "no compression");
  refuse(options.of<LocalStepsOptions>().local_steps > 1, "local steps", "cluster.local_steps = 1");
  refuse(options.of<SynchronousOptions>().reduction == "fast", "cluster.reduction = \"fast\"",
         "\"exact\"");
  refuse(now.options.optimizer.lazy_rows, "train.optimizer.lazy_rows = true", "lazy_rows = false");
  refuse(sharding == "weights" && options.of<PipelineOptions>().pipeline > 1, "pipelines",
         "\"gradients\"");
}

}  // namespace

void ShardingOptions::visit(KeyVisitor& field) {
  field({.name = "cluster.sharding",
         .help = "Divides state among workers: the `optimizer` state; also `gradients`; or also "
                 "`weights`. The bits stay the same.",
         .choices = {"none", "optimizer", "gradients", "weights"}},
        sharding);
}

// A strategy without a name: sums may use any algorithm.
StrategyKind sharded_kind() {
  return {.title = "In parts",
          .help =
              "With any of these names and `sharding`, each worker keeps only a part of the "
              "optimizer state, the gradients, or the weights, and updates that part.",
          .names = {},
          .visit_keys = keys_of<ShardingOptions, ShardsOptions, MeshOptions, MirrorOptions>(),
          .needs_all_workers =
              [](const StrategyOptions& options) { return options.of<ShardingOptions>().any(); },
          .check = check_sharding,
          .follows_without_lanes = true,
          .wanted =
              [](const Situation& now) {
                const StrategyOptions& options = now.options.strategy_options;
                return now.cluster.size() > 1 && adds_sums(now) &&
                       options.of<ShardingOptions>().any() && mesh_size(options).workers() == 1;
              },
          .make = [](const FitView& fit) { return std::make_unique<Sharded>(fit); }};
}

}  // namespace artel
