#include "artel/train/step/workload.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/exec/libraries.h"
#include "artel/graph/ops/shards.h"
#include "artel/train/loop/facts.h"
#include "artel/train/parts/mesh_axes.h"
#include "artel/train/step/teacher.h"
#include "artel/train/strategies/mesh.h"
#include "artel/train/trainer_state.h"

namespace artel {
namespace {

class Batches final : public Workload {
 public:
  Batches(TrainerState& state, data::Loader& loader, const FitOptions& options)
      : s_(state), loader_(loader), batch_size_(options.batch_size) {}
  ~Batches() override { record(nullptr); }

  void compile() override;
  void prepare() override;
  Metrics metrics() const override { return stepper_->region().metrics(); }
  Facts facts() const override;
  void share_optimizer(comm::Group& group, int root) override;
  void record(Timeline* timeline) override;
  void begin() override {
    const MeshSize mesh = mesh_size(s_.options.strategy_options);
    lane_partition_.emplace(s_.cluster.membership(), s_.lanes, loader_,
                            s_.cluster.size() > 1 ? mesh.workers() : 1);
  }
  std::optional<data::Batch> next() override;
  data::Batch part_of(const Tensor& x, const Tensor& y) const override;
  Stepper* stepper() override { return stepper_; }
  LanePartition* lane_partition() override { return lane_partition_ ? &*lane_partition_ : nullptr; }

 private:
  void teach(data::Batch& batch) const;

  TrainerState& s_;
  data::Loader& loader_;
  const int64_t batch_size_;
  Stepper* stepper_ = nullptr;
  std::optional<LanePartition> lane_partition_;
  Timeline* timeline_ = nullptr;
  int64_t total_ = 0;  // samples of the current global batch
};

// Compiles for every possible batch size, so that errors occur before the first step.
void Batches::compile() {
  stepper_ = &s_.stepper_for(loader_.layout());
  stepper_->buckets(batch_size_);
  const int64_t rest = loader_.sampler().samples_per_epoch() % batch_size_;
  if (rest > 0) stepper_->buckets(rest);
}

void Batches::prepare() {
  require(batch_size_ >= s_.lanes, ErrorKind::invalid_argument,
          "batch_size: got {}, expected at least one sample for each of the {} lanes", batch_size_,
          s_.lanes);
  compile();
}

// The network and the vector instructions that all workers use.
Facts Batches::facts() const {
  Facts facts = {{"processor", instruction_sets(s_.choices)}};
  const int64_t samples = Stepper::rows_of_lane(batch_size_, s_.lanes, 0).second;
  const Facts network = facts_of(*stepper_, s_.parameters, samples);
  facts.insert(facts.end(), network.begin(), network.end());
  return facts;
}

void Batches::share_optimizer(comm::Group& group, int root) {
  // Before the first step the state is zero; memory that was never written stays untouched.
  const auto is_zero = [](std::span<const float> block) {
    return std::all_of(block.begin(), block.end(), [](float x) { return x == 0; });
  };
  for (const std::span<float> block : stepper_->update().memory()) {
    const std::string zeros = is_zero(block) ? "zeros" : "";
    if (broadcast_text(group, zeros, root).empty())
      group.broadcast(std::as_writable_bytes(block), root, {.label = "optimizer"});
    else if (zeros.empty())
      std::fill(block.begin(), block.end(), 0.0F);
  }
}

// Adds spans on the thread of their lane.
void Batches::record(Timeline* timeline) {
  if (timeline_ == timeline || !s_.stepper) return;
  timeline_ = timeline;
  if (!timeline) return stepper_->set_timing({});
  stepper_->set_timing([this](int lane, const KernelTiming& timing) {
    const auto [begin, end] = Stepper::rows_of_lane(total_, s_.lanes, lane);
    const Plan& plan = stepper_->program(end - begin).plan();
    const std::string& op = plan.kernels[timing.kernel].op;
    const Clock::time_point now = Clock::now();
    timeline_->add(exchanges_shards(op) ? "wait" : "compute", Timeline::kFirstLane + lane, op,
                   now - std::chrono::duration_cast<Clock::duration>(
                             std::chrono::duration<double>(timing.seconds)),
                   now);
  });
}

std::optional<data::Batch> Batches::next() {
  std::optional<data::Batch> batch = loader_.next();
  if (batch) total_ = batch->total;
  if (batch) teach(*batch);
  return batch;
}

data::Batch Batches::part_of(const Tensor& x, const Tensor& y) const {
  const int64_t total = x.shape()[0];
  const comm::LaneRange own = lane_partition_->own();
  const int64_t begin = Stepper::rows_of_lane(total, s_.lanes, own.first).first;
  const int64_t end = Stepper::rows_of_lane(total, s_.lanes, own.last).first;
  data::Batch batch;
  batch.x = x.rows(begin, end);
  batch.y = y.rows(begin, end);
  batch.total = total;
  teach(batch);
  return batch;
}

void Batches::teach(data::Batch& batch) const {
  if (!s_.options.teacher || lane_partition_->own().size() == 0) return;
  batch.teacher =
      s_.options.teacher->outputs(batch, s_.lanes, lane_partition_->own(), stepper_->pool());
}

}  // namespace

std::unique_ptr<Workload> batches_of(TrainerState& state, data::Loader& loader,
                                     const FitOptions& options) {
  return std::make_unique<Batches>(state, loader, options);
}

}  // namespace artel
