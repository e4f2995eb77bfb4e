#include "artel/train/strategies/pipeline.h"

#include <algorithm>
#include <sstream>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/data/fetch.h"
#include "artel/plan/measure.h"
#include "artel/plan/pipeline.h"
#include "artel/tensor/pages.h"
#include "artel/train/agreement.h"
#include "artel/train/exchange.h"
#include "artel/train/pipeline_runner.h"
#include "artel/train/sharded_update.h"
#include "artel/train/strategies/divided.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/synchronous.h"

namespace artel {
namespace {

std::vector<std::string> schedule_choices() {
  std::vector<std::string> names = plan::schedule_names();
  names.insert(names.begin(), "auto");
  return names;
}

void check_size(int64_t size, int workers) {
  std::vector<std::string> divisors;
  for (int i = 2; i <= workers; ++i)
    if (workers % i == 0) divisors.push_back(std::to_string(i));
  require(workers > 1, ErrorKind::invalid_argument,
          "cluster.pipeline: got {} for one worker, expected as many workers or a multiple; try "
          "-n {}, or cluster.pipeline = 1",
          size, size);
  require(workers % size == 0, ErrorKind::invalid_argument,
          "cluster.pipeline: got {} for {} workers, expected a number that divides them; try {}",
          size, workers, join(divisors, " or "));
}

std::string to_text(const PipelineCuts& cuts) {
  std::string text = cuts.schedule;
  for (const int origin : cuts.origins) text += fmt::format(" {}", origin);
  return text;
}

PipelineCuts cuts_in(const std::string& text) {
  PipelineCuts cuts;
  std::istringstream words(text);
  words >> cuts.schedule;
  for (int origin = 0; words >> origin;) cuts.origins.push_back(origin);
  return cuts;
}

class Pipelined final : public DividedStrategy {
 public:
  explicit Pipelined(const Fit& fit);

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  bool computes_first() const override { return true; }
  MeshCoordinates coordinates() const override;
  DividedState* divided() override { return divided_.get(); }
  Traffic traffic() const override;

 private:
  // The axes of the mesh: worker r is in pipeline r / P, at place r % P.
  void make_axes();
  PipelineCuts choose_cuts() const;
  struct Sums {
    StepStatistics statistics;
    double squares = 0;  // of the whole gradient, if it is clipped
  };
  Sums share_sums(const Memory& total, int64_t step);
  std::vector<DividedState::Part> kept_parts() const;
  void spread_weights() override;
  KeptRanges updated() const override;

  int size_;                            // workers of a pipeline
  std::shared_ptr<comm::Group> along_;  // this pipeline
  Membership across_;                   // the workers with these stages in all pipelines
  std::unique_ptr<PipelineRunner> runner_;
  std::unique_ptr<ShardedUpdate> sharded_;  // if the workers across share their optimizer's memory
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<DividedState> divided_;
};

Pipelined::Pipelined(const Fit& fit)
    : DividedStrategy(fit), size_(static_cast<int>(fit.options_of<PipelineOptions>().pipeline)) {
  check_size(size_, fit.cluster.size());
  make_axes();
  fit.division->divide_among(across_);
  comm::Group& all = *fit.group();
  const std::string cuts = broadcast_text(all, all.rank() == 0 ? to_text(choose_cuts()) : "");
  runner_ = std::make_unique<PipelineRunner>(
      *fit.stepper, *along_, cuts_in(cuts), fit.lanes,
      across_.group ? fmt::format("worker {}, pipeline {}", all.rank(), all.rank() / size_)
                    : fmt::format("worker {}", all.rank()),
      [membership = across_](size_t bytes) { return allocate_sums(membership, bytes); },
      fit.timeline);
  fit.stepper->buckets(fit.batch_size);
  const auto& sharding = fit.options_of<ShardingOptions>();
  if (across_.group && sharding.any())
    sharded_ = std::make_unique<ShardedUpdate>(across_, *fit.stepper);
  const auto& sums = fit.options_of<SynchronousOptions>();
  exchange_ = std::make_unique<Exchange>(
      across_,
      ExchangeOptions{.strategy = fit.options.strategy,
                      .reduction = sums.reduction,
                      .coordinators = static_cast<int>(sums.coordinators),
                      .seed = fit.options.seed,
                      .shards = sharded_ ? &sharded_->shards() : nullptr,
                      .frees_sums = sharding.gradients(),
                      .of = fmt::format("stage {}", along_->rank())},
      fit.timeline);
  divided_ = std::make_unique<DividedState>(all, kept_parts());
}

// A worker has the weights that its stages read, and remembers what it updates.
std::vector<DividedState::Part> Pipelined::kept_parts() const {
  KeptRanges weights;
  for (const PipelineRunner::Place& place : runner_->places()) {
    const ParameterEntry& entry = fit_.parameters.entry(place.name);
    const std::vector<DividedState::Range> all = {{0, static_cast<size_t>(entry.shape.elements())}};
    const bool updates = place.worker == along_->rank();
    if (updates || place.read_here)
      weights[place.name] = all;
    else
      weights[place.name] = {};
  }
  return divided_parts(fit_.parameters, fit_.stepper->update(), weights, updated());
}

KeptRanges Pipelined::updated() const {
  KeptRanges ranges;
  const KeptRanges shards = sharded_ ? sharded_->kept() : KeptRanges();
  for (const PipelineRunner::Place& place : runner_->places()) {
    const auto all = static_cast<size_t>(fit_.parameters.entry(place.name).shape.elements());
    std::vector<DividedState::Range>& own = ranges[place.name];
    if (place.worker != along_->rank()) continue;
    if (sharded_)
      own = shards.at(place.name);
    else
      own = {{0, all}};
  }
  return ranges;
}

void Pipelined::make_axes() {
  const Membership& all = fit_.cluster.membership();
  const int pipeline = all.rank() / size_, place = all.rank() % size_;
  along_ = all.group;
  across_ = {.generation = all.generation, .group = nullptr};
  if (all.size() == size_) return;
  along_ = std::make_shared<comm::Group>(all.group->split(pipeline));
  across_.group = std::make_shared<comm::Group>(all.group->split(place));
}

MeshCoordinates Pipelined::coordinates() const {
  const int rank = fit_.cluster.rank();
  return {.data = across_.group ? rank / size_ : -1,
          .stage = rank % size_,
          .stages = runner_->stages() / size_,
          .pipeline = size_};
}

PipelineCuts Pipelined::choose_cuts() const {
  const std::string& wanted = fit_.options_of<PipelineOptions>().schedule;
  const int each = wanted != "auto" && plan::schedule_kind(wanted).several_stages ? 2 : 1;
  const int pipelines = fit_.cluster.size() / size_;
  const int64_t samples = (fit_.batch_size + fit_.lanes - 1) / fit_.lanes;
  const Graph graph = fit_.stepper->graph(samples);
  const plan::GraphCosts costs(graph,
                               fit_.options_of<PipelineOptions>().cuts == "measured"
                                   ? plan::measured_node_seconds(graph, fit_.stepper->choices(),
                                                                 data::data_folder() / "costs")
                                   : plan::estimated_node_seconds(graph));
  const plan::PipelinePlan plan = plan::plan_pipeline(
      costs, {.shape = {size_, size_ * each, fit_.lanes / pipelines},
              .schedule = wanted,
              .slots = static_cast<int>(fit_.stepper->update().memory().size())});
  PipelineCuts cuts = {plan.schedule.name, {}};
  for (const plan::PlannedStage& stage : plan.stages) {
    cuts.origins.push_back(graph.node(stage.first).origin);
    log(LogLevel::info, "stage {}: {} to {}", cuts.origins.size() - 1, costs.layer(stage.first),
        costs.layer(stage.last - 1));
  }
  log(LogLevel::info, "{} of {} workers, schedule {}", counted(pipelines, "pipeline"), size_,
      cuts.schedule);
  return cuts;
}

Strategy::Outcome Pipelined::step(const data::Batch& batch, const StepOptions& options) {
  const std::vector<Bucket>& buckets = fit_.stepper->buckets(batch.total);
  if (std::exchange(whole_, false)) divided_->forget_weights();
  const std::vector<Memory> partials = runner_->run({.range = fit_.division->own(),
                                                     .observing = {0, fit_.lanes},
                                                     .batch = batch.total,
                                                     .step = options.number,
                                                     .stop = fit_.stop,
                                                     .trace = fit_.trace > 0},
                                                    batch.x, batch.y);
  exchange_->begin_step(options.number, buckets, fit_.division->layout());
  const auto count = static_cast<int>(buckets.size());
  for (int b = 0; b < count; ++b) exchange_->start(b, buckets[b], partials);
  if (fit_.before_change) fit_.before_change();
  Memory total;
  for (int b = 0; b < count; ++b) total = exchange_->wait(b);
  const Sums sums = share_sums(total, options.number);
  {
    const Timeline::Scope scope(fit_.timeline, "update", Timeline::kMain, "update");
    Update& update = fit_.stepper->update();
    Update::Options how = {
        .step = options.number, .learning_rate = options.learning_rate, .lanes = fit_.lanes};
    if (update.clips()) how.gradient_scale *= update.clip_scale(sums.squares, how.gradient_scale);
    if (sharded_) {
      sharded_->apply(total, how);
      for (int b = 0; b < count; ++b) sharded_->gather_weights(*across_.group, b);
    } else {
      for (const Bucket& bucket : buckets) update.apply(bucket, total, how);
    }
    runner_->share_parameters();
  }
  return outcome_together(sums.statistics, batch);
}

// What a stage does not compute counts as zero: adding zeros changes no bit. So all workers get the
// loss and the metrics, whoever has computed them, and the squares of each parameter, which all add
// in the order of one worker. When this returns, all stages have finished the step.
Pipelined::Sums Pipelined::share_sums(const Memory& total, int64_t step) {
  Stepper& stepper = *fit_.stepper;
  Update& update = stepper.update();
  const size_t statistics = SummedRegion::kFirstMetric + stepper.region().metrics().sums();
  const std::span<const float> own = total.floats().first(statistics);
  std::vector<double> sums(own.begin(), own.end());
  if (update.clips()) {
    const std::vector<double> squares = sharded_ ? sharded_->squares(total) : update.squares(total);
    for (const PipelineRunner::Place& place : runner_->places()) {
      if (place.is_state) continue;
      sums.push_back(0);
      for (size_t i = 0; i < squares.size(); ++i)
        if (update.targets()[i].name == place.name) sums.back() = squares[i];
    }
  }
  {
    const Timeline::Scope scope(fit_.timeline, "wait", Timeline::kMain, "sums of stages");
    along_->all_reduce(std::as_writable_bytes(std::span(sums)), comm::ElementType::f64, {},
                       {.label = "sums of stages"});
  }
  Sums result;
  for (size_t i = statistics; i < sums.size(); ++i) result.squares += sums[i];
  const std::vector<float> together(sums.begin(),
                                    sums.begin() + static_cast<std::ptrdiff_t>(statistics));
  result.statistics = stepper.read_statistics(together, step);
  return result;
}

void Pipelined::spread_weights() {
  runner_->rest();
  for (int b = 0; sharded_ && b < sharded_->shards().buckets(); ++b)
    sharded_->gather_weights(*across_.group, b);
  Parameters& parameters = fit_.parameters;
  for (const PipelineRunner::Place& place : runner_->places())
    along_->broadcast(std::as_writable_bytes(parameters.values(parameters.entry(place.name))),
                      place.worker, {.label = "weights"});
}

Strategy::Traffic Pipelined::traffic() const {
  return {exchange_->traffic().waited_seconds + runner_->waited_seconds(),
          exchange_->traffic().sent_bytes + runner_->sent_bytes() +
              (sharded_ ? sharded_->sent_bytes() : 0)};
}

}  // namespace

void PipelineOptions::visit(KeyVisitor& field) {
  field({.name = "cluster.pipeline",
         .help = "Workers of a pipeline, each with a part of the network; must divide the workers. "
                 "1: each worker has all of it.",
         .least = 1},
        pipeline);
  static const std::vector<std::string> names = schedule_choices();
  field(
      {.name = "cluster.schedule",
       .help = "With `pipeline`: in which order the parts work (`artel plan` draws them); `auto`: "
               "the fastest by estimate.",
       .choices = {names.begin(), names.end()}},
      schedule);
  field({.name = "cluster.cuts",
         .help = "With `pipeline`: by which times the network is cut, `estimated` by a model of a "
                 "processor, or `measured` by worker 0 before the first step.",
         .choices = {"estimated", "measured"}},
        cuts);
}

// It has no name of its own: pipelines may add up their sums in any way.
namespace {

bool asks_for_stages(const StrategyOptions& options) {
  return options.of<PipelineOptions>().pipeline > 1;
}

}  // namespace

StrategyKind pipeline_kind() {
  return {.title = "Pipelines",
          .help =
              "With any of these names and `pipeline` above 1, the network is cut into stages, "
              "and each worker has only one of them; several pipelines share the lanes.",
          .names = {},
          .visit_keys = keys_of<PipelineOptions, SynchronousOptions, ShardingOptions>(),
          .needs_all_workers = asks_for_stages,
          .wanted =
              [](const Situation& s) {
                const std::vector<std::string> ways = exchange_names();
                return s.cluster.servers() == 0 &&
                       std::find(ways.begin(), ways.end(), s.options.strategy) != ways.end() &&
                       asks_for_stages(s.options.strategy_options);
              },
          .make = [](const Fit& fit) { return std::make_unique<Pipelined>(fit); }};
}

}  // namespace artel
