#include "artel/train/strategies/mesh.h"

#include <algorithm>
#include <numeric>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/base/text.h"
#include "artel/graph/passes/split_layers.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/loop/weight_readers.h"
#include "artel/train/parts/crowding.h"
#include "artel/train/parts/mesh_axes.h"
#include "artel/train/parts/passing_weights.h"
#include "artel/train/parts/pipeline_runner.h"
#include "artel/train/parts/sharded_update.h"
#include "artel/train/parts/tensor_group.h"
#include "artel/train/step/exchange.h"
#include "artel/train/strategies/divided.h"
#include "artel/train/strategies/local_steps.h"
#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/sharded.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategies/synchronous.h"
#include "artel/train/strategies/tensor.h"

namespace artel {
namespace {

class Mesh final : public DividedStrategy {
 public:
  explicit Mesh(const FitView& fit);
  ~Mesh() override;

  Outcome step(const data::Batch& batch, const StepOptions& options) override;
  DividedStateTransfer& state_transfer() override { return *divided_; }
  Traffic traffic() const override;
  ExchangePath path() const override;

 private:
  // A value that is summed over lanes.
  struct Part : SummedRegion::Part {
    int stage = 0;    // pipeline index of the worker that updates it
    int tensor = -1;  // tensor index of its worker; -1: all workers of the group have it
    size_t count() const { return bytes / sizeof(float); }
  };

  // "stage 1, tensor 0"; and the worker's name without its stages, for errors that name the stage.
  MeshCoordinates coordinates() const;
  std::string part_name() const;
  std::string name_beside_stage() const;
  void share_layers();
  void cut_into_stages();
  void find_parts();
  void exchange_norms(std::vector<optim::Norms>& norms) const;
  bool has(const Part& part) const { return part.tensor < 0 || part.tensor == axes_.place.tensor; }
  bool updates(const Part& part) const { return has(part) && part.stage == axes_.place.stage; }
  // Among several workers that have it, true on the one whose numbers count.
  bool speaks_for(const Part& part) const {
    return updates(part) && (part.tensor >= 0 || axes_.place.tensor == 0);
  }
  KeptRanges kept_weights() const;
  KeptRanges updated() const override;

  Memory compute_total(const data::Batch& batch, const StepOptions& options);
  struct Sums {
    StepStatistics statistics;
    double squares = 0;  // of the whole gradient, if clipped
  };
  Sums add_up(const Memory& total, int64_t step);
  void update_weights(const Memory& total, const Update::Options& how);
  void spread_weights() override;

  const ShardingOptions sharding_;
  MeshAxes axes_;
  std::vector<Part> parts_;  // of the whole network, in the order of one worker
  std::vector<std::unique_ptr<TensorGroup>> groups_;  // for each concurrent lane
  std::unique_ptr<PipelineRunner> runner_;            // null for one stage
  std::unique_ptr<ShardedUpdate> sharded_;  // if copies of a part share the optimizer state
  std::unique_ptr<Exchange> exchange_;
  std::unique_ptr<DividedStateTransfer> divided_;
  std::unique_ptr<PassingWeights> passing_;  // if they share weights, too
};

Mesh::Mesh(const FitView& fit)
    : DividedStrategy(fit),
      sharding_(fit.options_of<ShardingOptions>()),
      axes_(fit.cluster.membership(), mesh_size(fit.options.strategy_options),
            fit.options_of<MeshOptions>().speeds) {
  fit.lane_partition->divide_among(axes_.across);
  fit.stepper->buckets(fit.batch_size);
  for (const SummedRegion::Part& part : fit.stepper->region().parts()) parts_.push_back({part});
  if (axes_.tensor) share_layers();
  if (axes_.size.pipeline > 1) cut_into_stages();
  fit.stepper->buckets(fit.batch_size);
  traits_.coordinates = coordinates();
  find_parts();
  if (fit.stepper->shards() > 1)
    fit.stepper->update().set_norm_exchange(
        [this](std::vector<optim::Norms>& norms) { exchange_norms(norms); });
  if (axes_.across.group && sharding_.any())
    sharded_ = std::make_unique<ShardedUpdate>(axes_.across, *fit.stepper);
  const auto& sums = fit.options_of<SynchronousOptions>();
  exchange_ = std::make_unique<Exchange>(
      axes_.across,
      ExchangeOptions{.strategy = fit.options.strategy,
                      .reduction = reduction_of(fit.options),
                      .coordinators = static_cast<int>(sums.coordinators),
                      .seed = fit.options.seed,
                      .shards = sharded_ ? &sharded_->shards() : nullptr,
                      .frees_sums = sharding_.gradients(),
                      .of = part_name()},
      fit.timeline);
  divided_ = std::make_unique<DividedStateTransfer>(
      *fit.group(),
      divided_parts(fit.parameters, fit.stepper->update(), kept_weights(), updated()));
  if (sharded_ && sharding_.weights())
    passing_ = std::make_unique<PassingWeights>(*axes_.across.group, *fit.stepper, *sharded_,
                                                fit.lane_partition->own().size());
}

Mesh::~Mesh() {
  passing_.reset();
  runner_.reset();
  fit_.stepper->set_most_crowded();
  fit_.stepper->update().set_norm_exchange({});
  if (axes_.tensor) fit_.stepper->set_shards();
}

// A single copy of the network adds up the lanes by itself.
ExchangePath Mesh::path() const {
  if (axes_.across.group) return exchange_->path();
  const bool stages = axes_.size.pipeline > 1;
  return {.algorithm = stages ? "pipeline" : "tensor group",
          .reduction = "exact",
          .decided_by = stages ? fmt::format("cluster.pipeline = {}", axes_.size.pipeline)
                               : fmt::format("cluster.tensor = {}", axes_.size.tensor)};
}

// Concurrent lanes exchange separately, in the same order on all workers.
void Mesh::share_layers() {
  Stepper& stepper = *fit_.stepper;
  const int threads = stepper.pool().threads(), size = axes_.size.tensor;
  std::vector<int32_t> all(static_cast<size_t>(size));
  const auto own = static_cast<int32_t>(threads);
  axes_.tensor->all_gather(std::as_bytes(std::span(&own, 1)),
                           std::as_writable_bytes(std::span(all)), {}, {.label = "threads"});
  const auto [least, most] = std::minmax_element(all.begin(), all.end());
  require(*least == *most, ErrorKind::invalid_argument,
          "cluster.tensor: got workers with {} and {} threads in one group, expected equally many; "
          "try train.threads = {}",
          *least, *most, *least);
  const std::string name =
      fmt::format("worker {}, {}", fit_.cluster.rank(), to_string(coordinates()));
  const int beside = axes_.size.pipeline > 1 ? 1 : std::min(fit_.lanes, threads);
  for (int i = 0; i < beside; ++i)
    groups_.push_back(
        std::make_unique<TensorGroup>(axes_.tensor->split(0), stepper.shards(), name));
  if (fit_.cluster.rank() == 0) {
    const int64_t samples = std::max<int64_t>(1, fit_.batch_size / fit_.lanes);
    const std::vector<std::string> whole = whole_layers(stepper.graph(samples));
    log(LogLevel::info, "{} of {} workers, {}{}{}",
        counted(fit_.cluster.size() / size, "tensor group"), size,
        counted(stepper.shards(), "shard"), whole.empty() ? "" : "; not cut: ", join(whole, ", "));
  }
  const int each = stepper.shards() / size, place = axes_.place.tensor;
  stepper.set_shards({stepper.shards(), place * each, (place + 1) * each},
                     [this](int number) -> ShardExchange* {
                       return groups_.at(static_cast<size_t>(number)).get();
                     });
}

void Mesh::cut_into_stages() {
  comm::Group& all = *fit_.group();
  const int copies = fit_.cluster.size() / axes_.size.workers();
  const PipelineCuts cuts = agreed_cuts(all, [&] { return choose_cuts(fit_, axes_.size, copies); });
  runner_ = std::make_unique<PipelineRunner>(
      *fit_.stepper, *axes_.pipeline, cuts, fit_.lanes, name_beside_stage(), coordinates(),
      [across = axes_.across](size_t bytes) { return allocate_sums(across, bytes); },
      fit_.timeline);
  agree_on_crowding(all, *fit_.stepper, fit_.lanes);
}

// All workers of a tensor group have the same cuts, so this worker's n-th shard of a parameter
// corresponds to theirs.
void Mesh::find_parts() {
  const int each = fit_.stepper->shards() / axes_.size.tensor;
  for (Part& part : parts_)
    if (part.shard >= 0) part.tensor = part.shard / each;
  if (!runner_) return;
  std::map<std::string, const PipelineRunner::Place*> places;
  for (const PipelineRunner::Place& place : runner_->places()) places[place.name] = &place;
  std::map<std::pair<std::string, int>, const PipelineRunner::Place*> of_shard;
  for (const Part& part : parts_)
    if (has(part)) of_shard[{part.whole, part.shard % each}] = places.at(part.name);
  for (Part& part : parts_) part.stage = of_shard.at({part.whole, part.shard % each})->worker;
}

MeshCoordinates Mesh::coordinates() const {
  MeshCoordinates at;
  if (axes_.across.group) at.data = axes_.place.data;
  if (axes_.size.pipeline > 1) {
    at.stage = axes_.place.stage;
    at.pipeline = axes_.size.pipeline;
    at.stages = runner_ ? runner_->stages() / axes_.size.pipeline : 1;
  }
  if (axes_.tensor) at.tensor = axes_.place.tensor;
  return at;
}

std::string Mesh::part_name() const {
  MeshCoordinates at = coordinates();
  at.data = -1;
  return to_string(at);
}

std::string Mesh::name_beside_stage() const {
  MeshCoordinates at = coordinates();
  at.stage = -1;
  const std::string beside = to_string(at);
  return fmt::format("worker {}{}{}", fit_.cluster.rank(), beside.empty() ? "" : ", ", beside);
}

// A worker keeps the weights that it updates, and receives those of other stages before each step.
// Weights that all workers have belong to no part.
KeptRanges Mesh::kept_weights() const {
  if (sharded_ && sharding_.weights()) return updated();
  KeptRanges ranges;
  for (const Part& part : parts_)
    if (runner_ || part.tensor >= 0) ranges[part.whole];
  for (const Part& part : parts_)
    if (const auto found = ranges.find(part.whole); found != ranges.end() && updates(part))
      found->second.push_back({part.first, part.count()});
  return in_order(std::move(ranges));
}

KeptRanges Mesh::updated() const {
  KeptRanges ranges = sharded_ ? sharded_->kept() : KeptRanges();
  for (const Part& part : parts_) {
    std::vector<DividedStateTransfer::Range>& own = ranges[part.whole];
    if (!sharded_ && updates(part)) own.push_back({part.first, part.count()});
  }
  return in_order(std::move(ranges));
}

Strategy::Outcome Mesh::step(const data::Batch& batch, const StepOptions& options) {
  if (std::exchange(whole_, false)) divided_->forget_weights();
  const Memory total = compute_total(batch, options);
  const Sums sums = add_up(total, options.number);
  const Timeline::Scope scope(fit_.timeline, "update", Timeline::kMain, "update");
  Update& update = fit_.stepper->update();
  Update::Options how = {.step = options.update,
                         .learning_rate = options.learning_rate,
                         .gradient_scale = sums.statistics.gradient_scale(),
                         .lanes = fit_.lanes};
  if (update.clips()) how.gradient_scale *= update.clip_scale(sums.squares, how.gradient_scale);
  update_weights(total, how);
  return outcome_together(sums.statistics, batch);
}

// The sums over all lanes of this worker's part. Without stages they are exchanged while it
// computes.
Memory Mesh::compute_total(const data::Batch& batch, const StepOptions& options) {
  const std::vector<Bucket>& buckets = fit_.stepper->buckets(batch.total);
  const auto count = static_cast<int>(buckets.size());
  exchange_->begin_step(options.number, buckets, fit_.lane_partition->layout());
  if (passing_) passing_->begin_step(batch.total);
  if (runner_) {
    const Clock::time_point begin = Clock::now();
    const double waited = runner_->waited_seconds();
    const std::vector<Memory> partials = runner_->run({.range = fit_.lane_partition->own(),
                                                       .observing = {0, fit_.lanes},
                                                       .batch = batch.total,
                                                       .step = options.number,
                                                       .stop = fit_.stop,
                                                       .trace = fit_.trace > 0,
                                                       .leaves = fit_.leaves,
                                                       .teacher = teacher_of(batch)},
                                                      batch.x, batch.y);
    fit_.lane_partition->computed(seconds_between(begin, Clock::now()) -
                                  (runner_->waited_seconds() - waited));
    for (int b = 0; b < count; ++b) {
      if (b == count - 1) fit_.readers.wait();
      exchange_->start(b, buckets[b], partials);
    }
  } else {
    compute(batch, options, {0, fit_.lanes}, [&](int bucket, const std::vector<Memory>& partials) {
      exchange_->start(bucket, buckets[bucket], partials);
    });
  }
  if (passing_) passing_->end_step();
  Memory total;
  for (int b = 0; b < count; ++b) total = exchange_->wait(b);
  return total;
}

// Values of other workers count as zero, which changes no bit. All workers get the loss, the
// metrics, and the squares of each part, which they add in the order of one worker. Returns when
// all have finished the step.
Mesh::Sums Mesh::add_up(const Memory& total, int64_t step) {
  Stepper& stepper = *fit_.stepper;
  Update& update = stepper.update();
  const size_t statistics = stepper.region().statistics();
  const std::span<const float> own = total.floats().first(statistics);
  std::vector<double> sums(own.begin(), own.end());
  if (axes_.place.tensor > 0)  // the others of the group have them, too
    for (size_t i = 0; i < statistics; ++i)
      if (i < SummedRegion::kStop || i >= SummedRegion::kFirstMetric) sums[i] = 0;
  if (update.clips()) {
    const std::vector<double> squares = sharded_ ? sharded_->squares(total) : update.squares(total);
    sums.resize(statistics + parts_.size());
    for (size_t i = 0; i < parts_.size(); ++i)
      for (size_t k = 0; speaks_for(parts_[i]) && k < squares.size(); ++k)
        if (update.targets()[k].name == parts_[i].name) sums[statistics + i] = squares[k];
  }
  {
    const Timeline::Scope scope(fit_.timeline, "wait", Timeline::kMain, "sums of parts");
    axes_.once->all_reduce(std::as_writable_bytes(std::span(sums)), comm::ElementType::f64, {},
                           {.label = "sums of parts"});
  }
  const auto first_square = sums.begin() + static_cast<std::ptrdiff_t>(statistics);
  const std::vector<float> together(sums.begin(), first_square);
  return {stepper.read_statistics(together, step), std::accumulate(first_square, sums.end(), 0.0)};
}

// For LARS and LAMB: a parameter's norms are the sums over its shards. All workers of a copy of the
// network call this, even one whose part has no shards.
void Mesh::exchange_norms(std::vector<optim::Norms>& norms) const {
  const std::vector<Update::Target>& targets = fit_.stepper->update().targets();
  std::map<std::string_view, size_t> number;
  for (size_t i = 0; i < targets.size(); ++i) number.emplace(targets[i].name, i);
  std::vector<optim::Norms> all(parts_.size());
  for (size_t i = 0; i < parts_.size(); ++i)
    if (speaks_for(parts_[i])) all[i] = norms[number.at(parts_[i].name)];
  static_assert(sizeof(optim::Norms) == 2 * sizeof(double));
  axes_.once->all_reduce(std::as_writable_bytes(std::span(all)), comm::ElementType::f64, {},
                         {.label = "norms of shards"});
  add_over_shards(parts_, all);
  for (size_t i = 0; i < parts_.size(); ++i)
    if (updates(parts_[i])) norms[number.at(parts_[i].name)] = all[i];
}

void Mesh::update_weights(const Memory& total, const Update::Options& how) {
  if (!sharded_) {
    update_to(how.step, [&] { fit_.stepper->update().apply(total, how); });
  } else {
    // A bucket is sent while the next one is updated, unless weights wait for the next step.
    std::vector<comm::Handle> gathers;
    update_to(how.step, [&] {
      sharded_->apply(total, how, [&](int bucket) {
        if (passing_) return;
        gathers.push_back(axes_.across.group->start(
            [this, bucket](comm::Group& group) { sharded_->gather_weights(group, bucket); }));
      });
    });
    wait_for_all(gathers);
  }
}

void Mesh::spread_weights() {
  if (runner_) runner_->release_memory();
  if (passing_) passing_->stop_sharing();
  for (int b = 0; sharded_ && b < sharded_->shards().buckets(); ++b)
    sharded_->gather_weights(*axes_.across.group, b);
  Parameters& parameters = fit_.parameters;
  for (const Part& part : parts_) {
    if (!runner_ && part.tensor < 0) continue;
    const MeshPlace owner = {0, part.stage, std::max(0, part.tensor)};
    const std::span<float> values =
        parameters.values(parameters.entry(part.whole)).subspan(part.first, part.count());
    axes_.once->broadcast(std::as_writable_bytes(values), owner.part(axes_.size),
                          {.label = "weights"});
  }
}

Strategy::Traffic Mesh::traffic() const {
  Traffic traffic = {.waited_seconds = exchange_->traffic().waited_seconds};
  if (runner_) traffic.waited_seconds += runner_->waited_seconds();
  for (const auto& group : groups_) traffic.waited_seconds += group->waited_seconds();
  return traffic;
}

bool asks_for_mesh(const StrategyOptions& options) { return mesh_size(options).workers() > 1; }

void check_size(const MeshSize& size, int workers) {
  if (size.pipeline == 1) return;  // see check_tensor
  require(workers > 1, ErrorKind::invalid_argument,
          "cluster.pipeline: got {} for one worker, expected as many workers or a multiple; try "
          "-n {}, or cluster.pipeline = 1",
          size.pipeline, size.workers());
  require(workers % size.pipeline == 0, ErrorKind::invalid_argument,
          "cluster.pipeline: got {} for {} workers, expected a number that divides them; try {}",
          size.pipeline, workers, divisors_of(workers, 2));
  require(
      workers % size.workers() == 0, ErrorKind::invalid_argument,
      "cluster.pipeline: got {} with cluster.tensor = {} for {} workers, expected numbers whose "
      "product divides them; try cluster.pipeline = {}, or -n {}",
      size.pipeline, size.tensor, workers, divisors_of(workers / size.tensor), size.workers());
}

void check_mesh(const Situation& now) {
  const StrategyOptions& options = now.options.strategy_options;
  if (!asks_for_mesh(options) || !adds_sums(now)) return;
  check_size(mesh_size(options), now.cluster.size());
  const bool stages = mesh_size(options).pipeline > 1;
  const auto refuse = [&](bool wrong, std::string_view with, std::string_view instead) {
    require(!wrong, ErrorKind::invalid_argument,
            "cluster.{}: got {} with {}, expected 1; try that, or {}",
            stages ? "pipeline" : "tensor",
            stages ? mesh_size(options).pipeline : mesh_size(options).tensor, with, instead);
  };
  refuse(
      stages && mesh_size(options).tensor > 1 && options.of<PipelineOptions>().cuts == "measured",
      "cluster.tensor and cluster.cuts = \"measured\"", "cluster.cuts = \"estimated\"");
  const std::string& compress = options.of<PackingOptions>().compress;
  refuse(!compress.empty() && compress != "none",
         fmt::format("cluster.compress = \"{}\"", compress), "no compression");
  refuse(options.of<LocalStepsOptions>().local_steps > 1, "local steps", "cluster.local_steps = 1");
}

}  // namespace

void MeshOptions::visit(KeyVisitor& field) {
  field(
      {.name = "cluster.mesh",
       .help = "`given`: as set by `pipeline`, `tensor` and `sharding`. `auto`: the mesh with the "
               "fastest forecast that fits into `cluster.memory`, with the same bits; includes "
               "`tensor` if `shards` is set.",
       .choices = {"given", "auto"}},
      mesh);
}

MeshSize mesh_size(const StrategyOptions& options) {
  return {static_cast<int>(options.of<PipelineOptions>().pipeline),
          static_cast<int>(options.of<TensorOptions>().tensor)};
}

// It has no name of its own: sums may take any way.
StrategyKind mesh_kind() {
  return {.title = "Mesh",
          .help =
              "With any of these names and `pipeline` above 1, the network is cut into stages, and "
              "each worker has only one of them; with `tensor` above 1, the workers of a group "
              "share each layer. Workers with the same part share the lanes.",
          .names = {},
          .visit_keys = keys_of<MeshOptions, PipelineOptions, TensorOptions, ShardsOptions,
                                SynchronousOptions, ShardingOptions, MirrorOptions>(),
          .needs_all_workers =
              [](const StrategyOptions& options) {
                const auto& mesh = options.of<MeshOptions>();
                return asks_for_mesh(options) || (mesh.mesh == "auto" && !mesh.chosen);
              },
          .check =
              [](const Situation& now) {
                check_tensor(now);
                check_mesh(now);
              },
          .follows_without_lanes = true,
          .wanted =
              [](const Situation& now) {
                return adds_sums(now) && asks_for_mesh(now.options.strategy_options);
              },
          .make = [](const FitView& fit) { return std::make_unique<Mesh>(fit); }};
}

}  // namespace artel
