#include "artel/train/strategies/tensor.h"

#include <algorithm>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/graph/passes/split_layers.h"
#include "artel/train/exchange.h"
#include "artel/train/strategies/divided.h"
#include "artel/train/strategies/local_steps.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategies/synchronous.h"
#include "artel/train/tensor_group.h"

namespace artel {
namespace {

class Tensored final : public DividedStrategy {
 public:
  explicit Tensored(const Fit& fit);
  ~Tensored() override { fit_.stepper->set_shards(); }

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  bool computes_first() const override { return true; }
  MeshCoordinates coordinates() const override;
  DividedState* divided() override { return divided_.get(); }
  Traffic traffic() const override;

 private:
  // Something that is summed over lanes, in the order of one worker.
  struct Part {
    std::string name, whole;
    size_t first = 0, count = 0;  // elements of the whole
    bool is_state = false;
    int owner = -1;  // the worker of the group that has it; -1: all
  };

  void make_axes();
  void find_parts();
  void make_groups();
  KeptRanges kept(bool all) const;
  double meet(const Memory& total, StepStatistics& statistics);
  void spread_weights() override;
  KeptRanges updated() const override { return kept(/*all=*/true); }

  int size_;                            // workers of a group
  std::shared_ptr<comm::Group> along_;  // this group
  Membership across_;                   // the workers with these shards in all groups
  std::vector<Part> parts_;
  std::vector<std::unique_ptr<TensorGroup>> groups_;  // for each lane that runs side by side
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<DividedState> divided_;
};

Tensored::Tensored(const Fit& fit)
    : DividedStrategy(fit), size_(static_cast<int>(fit.options_of<TensorOptions>().tensor)) {
  make_axes();
  find_parts();
  make_groups();
  fit.division->divide_among(across_);
  const int each = shards_of(fit.options.strategy_options) / size_, place = along_->rank();
  fit.stepper->set_shards({each * size_, place * each, (place + 1) * each},
                          [this](int number) -> ShardExchange* {
                            return groups_.at(static_cast<size_t>(number)).get();
                          });
  fit.stepper->buckets(fit.batch_size);
  const auto& sums = fit.options_of<SynchronousOptions>();
  exchange_ = std::make_unique<Exchange>(
      across_,
      ExchangeOptions{.strategy = fit.options.strategy,
                      .reduction = sums.reduction,
                      .coordinators = static_cast<int>(sums.coordinators),
                      .seed = fit.options.seed,
                      .of = fmt::format("tensor {}", place)},
      fit.timeline);
  divided_ = std::make_unique<DividedState>(
      *fit.group(), divided_parts(fit.parameters, fit.stepper->update(), kept(/*all=*/false),
                                  kept(/*all=*/true)));
}

// Worker r is in group r / T, at place r % T: those of a group are neighbours.
void Tensored::make_axes() {
  const Membership& all = fit_.cluster.membership();
  along_ = all.group;
  across_ = {.generation = all.generation, .group = nullptr};
  if (all.size() == size_) return;
  along_ = std::make_shared<comm::Group>(all.group->split(all.rank() / size_));
  across_.group = std::make_shared<comm::Group>(all.group->split(all.rank() % size_));
}

MeshCoordinates Tensored::coordinates() const {
  const int rank = fit_.cluster.rank();
  return {.data = across_.group ? rank / size_ : -1, .tensor = rank % size_};
}

void Tensored::find_parts() {
  Stepper& stepper = *fit_.stepper;
  stepper.buckets(fit_.batch_size);
  const int each = stepper.shards() / size_;
  for (const SummedRegion::Part& part : stepper.region().parts())
    parts_.push_back({part.name, part.whole, part.first, part.bytes / sizeof(float), part.is_state,
                      part.shard < 0 ? -1 : part.shard / each});
  if (fit_.cluster.rank() != 0) return;
  const int64_t samples = std::max<int64_t>(1, fit_.batch_size / fit_.lanes);
  const std::vector<std::string> whole = whole_layers(stepper.graph(samples));
  log(LogLevel::info, "{} of {} workers, {}{}{}",
      counted(fit_.cluster.size() / size_, "tensor group"), size_,
      counted(stepper.shards(), "shard"), whole.empty() ? "" : "; not cut: ", join(whole, ", "));
}

// Lanes that run side by side each exchange on their own, in the same order on all workers.
void Tensored::make_groups() {
  const int threads = fit_.stepper->pool().threads();
  std::vector<int32_t> all(static_cast<size_t>(size_));
  const auto own = static_cast<int32_t>(threads);
  along_->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(all)), {},
                     {.label = "threads"});
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  require(*least == *most, ErrorKind::invalid_argument,
          "cluster.tensor: got workers with {} and {} threads in one group, expected equally many; "
          "try train.threads = {}",
          *least, *most, *least);
  const std::string name =
      fmt::format("worker {}, {}", fit_.cluster.rank(), to_string(coordinates()));
  for (int i = 0; i < Stepper::side_by_side(fit_.lanes, threads); ++i)
    groups_.push_back(
        std::make_unique<TensorGroup>(along_->split(0), fit_.stepper->shards(), name));
}

Strategy::Outcome Tensored::step(const data::Batch& batch, const StepOptions& options) {
  const std::vector<Bucket>& buckets = fit_.stepper->buckets(batch.total);
  if (std::exchange(whole_, false)) divided_->forget_weights();
  exchange_->begin_step(options.number, buckets, fit_.division->layout());
  compute(batch, options, {0, fit_.lanes}, [&](int bucket, const std::vector<Memory>& partials) {
    exchange_->start(bucket, buckets[bucket], partials);
  });
  StepStatistics statistics =
      fit_.stepper->read_statistics(exchange_->wait(0).floats(), options.number);
  Memory total;
  for (int b = 0; b < static_cast<int>(buckets.size()); ++b) total = exchange_->wait(b);
  Update& update = fit_.stepper->update();
  Update::Options how = {
      .step = options.number, .learning_rate = options.learning_rate, .lanes = fit_.lanes};
  // When this returns, all workers of the group have finished the step.
  const double square = meet(total, statistics);
  const Timeline::Scope scope(fit_.timeline, "update", Timeline::kMain, "update");
  if (update.clips()) how.gradient_scale = update.clip_scale(square);
  for (const Bucket& bucket : buckets) update.apply(bucket, total, how);
  return outcome_together(statistics, batch);
}

// The workers of the group learn what any of them wishes. Returns the sum of the squares of the
// whole gradient, in the order of one worker: each number comes from the worker that has the shard,
// the others add zero.
double Tensored::meet(const Memory& total, StepStatistics& statistics) {
  const Timeline::Scope scope(fit_.timeline, "wait", Timeline::kMain, "tensor group");
  Update& update = fit_.stepper->update();
  std::vector<double> sums;
  if (update.clips()) {
    sums.resize(parts_.size());
    const std::vector<double> own = update.squares(total);
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].owner != along_->rank() && (parts_[i].owner >= 0 || along_->rank() > 0))
        continue;
      for (size_t k = 0; k < own.size(); ++k)
        if (update.targets()[k].name == parts_[i].name) sums[i] = own[k];
    }
  }
  sums.insert(sums.end(), {statistics.stop ? 1.0 : 0.0, statistics.trace ? 1.0 : 0.0});
  along_->all_reduce(std::as_writable_bytes(std::span(sums)), comm::ElementType::f64, {},
                     {.label = "squares of shards"});
  statistics.stop = sums.end()[-2] > 0;
  statistics.trace = sums.back() > 0;
  return std::accumulate(sums.begin(), sums.end() - 2, 0.0);
}

// Of all parameters, or only of those that are cut: these all workers name.
KeptRanges Tensored::kept(bool all) const {
  KeptRanges ranges;
  for (const Part& part : parts_)
    if (all || part.owner >= 0) ranges[part.whole];
  for (const Part& part : parts_)
    if (const auto found = ranges.find(part.whole);
        found != ranges.end() && (part.owner < 0 || part.owner == along_->rank()))
      found->second.push_back({part.first, part.count});
  for (auto& [name, own] : ranges)
    std::sort(own.begin(), own.end(),
              [](const DividedState::Range& x, const auto& y) { return x.first < y.first; });
  return ranges;
}

void Tensored::spread_weights() {
  Parameters& parameters = fit_.parameters;
  for (const Part& part : parts_) {
    if (part.owner < 0) continue;
    const std::span<float> values =
        parameters.values(parameters.entry(part.whole)).subspan(part.first, part.count);
    along_->broadcast(std::as_writable_bytes(values), part.owner, {.label = "weights"});
  }
}

Strategy::Traffic Tensored::traffic() const {
  Traffic traffic = {exchange_->traffic().waited_seconds, exchange_->traffic().sent_bytes};
  for (const auto& group : groups_) {
    traffic.waited_seconds += group->waited_seconds();
    traffic.sent_bytes += group->sent_bytes();
  }
  return traffic;
}

bool asks_for_groups(const StrategyOptions& options) {
  return options.of<TensorOptions>().tensor > 1;
}

std::string divisors_of(int number) {
  std::vector<std::string> divisors;
  for (int i = 1; i <= number; ++i)
    if (number % i == 0) divisors.push_back(std::to_string(i));
  return join(divisors, " or ");
}

void check_tensor(const Situation& now) {
  const StrategyOptions& options = now.options.strategy_options;
  const int size = workers_sharing_layers(options, now.cluster.size()), shards = shards_of(options);
  if (shards == 1) return;
  require(shards % size == 0, ErrorKind::invalid_argument,
          "cluster.shards: got {} for cluster.tensor = {}, expected a multiple of it; try {}",
          shards, size, (shards + size - 1) / size * size);
  const auto refuse = [&](bool wrong, std::string_view with, std::string_view instead) {
    require(!wrong, ErrorKind::invalid_argument,
            "cluster.{}: got {} with {}, expected 1; try that, or {}",
            size > 1 ? "tensor" : "shards", size > 1 ? size : shards, with, instead);
  };
  refuse(!adds_sums(now), fmt::format("the strategy \"{}\"", now.options.strategy),
         "the strategy \"auto\" without parameter servers");
  refuse(optim::make_optimizer(now.options.optimizer)->scope() != optim::Optimizer::Scope::element,
         "an optimizer that looks at whole parameters, such as LARS or LAMB", "\"adamw\"");
  refuse(options.of<PipelineOptions>().pipeline > 1, "pipelines", "cluster.pipeline = 1");
  if (size == 1) return;
  const std::string& compress = options.of<PackingOptions>().compress;
  refuse(!compress.empty() && compress != "none",
         fmt::format("cluster.compress = \"{}\"", compress), "no compression");
  refuse(options.of<LocalStepsOptions>().local_steps > 1, "local steps", "cluster.local_steps = 1");
  refuse(options.of<ShardingOptions>().any(), "cluster.sharding", "cluster.sharding = \"none\"");
}

}  // namespace

void TensorOptions::visit(KeyVisitor& field) {
  field(
      {.name = "cluster.tensor",
       .help = "Workers that share the layers of a network, each with some of their columns, rows "
               "and heads; must divide the workers. 1: each worker has whole layers.",
       .least = 1},
      tensor);
}

int shards_of(const StrategyOptions& options) {
  const int64_t shards = options.of<ShardsOptions>().shards;
  return static_cast<int>(shards > 0 ? shards : options.of<TensorOptions>().tensor);
}

int workers_sharing_layers(const StrategyOptions& options, int workers) {
  const auto size = static_cast<int>(options.of<TensorOptions>().tensor);
  require(workers > 1 || size == 1, ErrorKind::invalid_argument,
          "cluster.tensor: got {} for one worker, expected as many workers or a multiple; try -n "
          "{}, or cluster.tensor = 1 with cluster.shards = {} for the same bits",
          size, size, shards_of(options));
  require(workers % size == 0, ErrorKind::invalid_argument,
          "cluster.tensor: got {} for {} workers, expected a number that divides them; try {}",
          size, workers, divisors_of(workers));
  return size;
}

// It has no name of its own: groups may add up their sums in any way.
StrategyKind tensor_kind() {
  return {.title = "Tensor groups",
          .help =
              "With any of these names and `tensor` above 1, the workers of a group share each "
              "layer; several groups share the lanes.",
          .names = {},
          .visit_keys = keys_of<TensorOptions, ShardsOptions, SynchronousOptions>(),
          .needs_all_workers = asks_for_groups,
          .check = check_tensor,
          .wanted =
              [](const Situation& now) {
                return adds_sums(now) && asks_for_groups(now.options.strategy_options);
              },
          .make = [](const Fit& fit) { return std::make_unique<Tensored>(fit); }};
}

}  // namespace artel
