// One training step of a model on this worker: forward and backward passes of its lanes, and the
// update.
//
// A global batch is cut into lanes. A lane is always computed with the same shapes, random numbers,
// and kernels, whichever worker runs it. The gradients of lanes are added in one canonical tree
// order (comm/collectives/lane_tree.h), so the weights after a step have the same bits for any
// number of threads and workers. Each thread runs its lanes together as groups, kernel by kernel:
// shared work, such as packing weights, is done once, and gradients are added inside kernels.
// Neither changes bits. If too few lanes would leave threads idle, all threads share each kernel.
//
// Sums over lanes are in one region: loss and metrics, gradients in the order in which they become
// ready, and observations of states. It is cut into buckets. A bucket is handed out as soon as all
// local lanes have it, during the backward pass.
//
//   artel::KernelChoices choices;
//   artel::Stepper stepper(model, {artel::DType::f32, {784}}, {artel::DType::i32, {}},
//                          artel::loss_by_name("cross_entropy"), artel::optim::sgd(0.1),
//                          trainer.parameters(), choices, {.threads = 2, .lanes = 4});
//   const double loss = stepper.step(images, labels, 1, 0.1f).loss();
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/comm/collectives/lane_tree.h"
#include "artel/data/loader.h"
#include "artel/exec/program.h"
#include "artel/nn/model.h"
#include "artel/train/loop/gradient_noise.h"
#include "artel/train/step/update.h"

namespace artel {

struct StepperOptions {
  int threads = 1;
  int lanes = 1;   // of the global batch
  int shards = 1;  // of divided layers (graph/passes/split_layers.h)
  uint64_t seed = 0;
  size_t memory_limit = 0;  // of this worker's activations
  int lanes_together = 0;   // maximum lanes of a group; 0: limited by memory_limit
  bool check_numbers = false;
  bool check_memory = false;
  std::function<bool(const std::string&)> trained = {};  // selects trained parameters; empty: all
  size_t bucket_bytes = size_t{4} << 20;
  std::vector<Metric> metrics = {};          // computed in each step
  std::vector<std::string> keep_zeros = {};  // parameters whose zeros stay (Update::keep_zeros)
};

// The statistics at the beginning of a summed region, for all lanes or some of them.
struct StepStatistics {
  double weighted_loss = 0;  // sum over the samples of weight times loss
  double weight = 0;         // sum of the weights; without weights, the number of samples
  double samples = 0;
  std::vector<double> sums;  // of the metrics (SummedRegion::metrics)
  bool stop = false;         // some worker wants to stop after this step
  bool trace = false;        // a worker requests a trace
  bool newcomers = false;    // newcomers join after this step
  bool leaves = false;       // some worker wants to leave after this step

  // True if any sample counts. Otherwise the gradient is zero and there is no loss.
  bool counts() const { return weight > 0; }
  // The weighted mean over the samples.
  double loss() const { return counts() ? weighted_loss / weight : 0; }
  // Converts the sum of gradients, in which each sample counts by its share of the batch, to the
  // gradient of the mean loss.
  float gradient_scale() const { return counts() ? static_cast<float>(samples / weight) : 1; }
};

// The value of Stepper::Work::teacher for a batch.
inline const Tensor* teacher_of(const data::Batch& batch) {
  return batch.teacher.bytes() > 0 ? &batch.teacher : nullptr;
}

class Stepper {
 public:
  // `x` and `y` are the types of one sample. `parameters` and `choices` are borrowed.
  Stepper(const Model& model, const TensorType& x, const TensorType& y, const Loss& loss,
          const optim::OptimizerConfig& optimizer, Parameters& parameters, KernelChoices& choices,
          StepperOptions options);
  ~Stepper();

  // Allocates zeroed and aligned memory for sums.
  using Allocate = std::function<Memory(size_t)>;
  // Between steps: releases the memory of activations and sums until the next step.
  void release_memory();
  // Between steps: sets the allocator of memory for sums. The default uses ordinary memory.
  void set_sum_memory(Allocate allocate);

  ThreadPool& pool() { return *pool_; }
  KernelChoices& choices() { return choices_; }
  int lanes() const { return options_.lanes; }
  int shards() const { return options_.shards; }

  // The number of groups that run concurrently on a worker with this many lanes: one per thread, or
  // one on all threads if that would waste more than a fifth of the threads' time, or if the sums
  // of the other groups would take more than a fifth of the memory of activations. `sums_per_lane`
  // is the size of a region of sums relative to the activations of a lane.
  static int side_by_side(int own_lanes, int threads, double sums_per_lane);
  // The number of regions of sums needed: one per subtree of a group's lanes.
  static int sums_in_memory(int own_lanes, int threads, double sums_per_lane);
  static double sums_per_lane(const Program& program);
  // The same for the lanes of this worker, once a program has been compiled.
  int slots() const {
    return restrict_ || on_device() ? 1
                                    : side_by_side(own_lanes_, options_.threads, sums_per_lane_);
  }

  // The rows of a lane in a global batch.
  static std::pair<int64_t, int64_t> rows_of_lane(int64_t batch, int lanes, int lane) {
    return {batch * lane / lanes, batch * (lane + 1) / lanes};
  }

  // A whole step on one worker, with all lanes of the global batch x, y.
  StepStatistics step(const Tensor& x, const Tensor& y, int64_t step, float learning_rate);

  // The first half of a step: runs lanes [range.first, range.last) of a global batch of `batch`
  // samples; `x` and `y` hold the samples of these lanes only. Calls `ready(b, partials)` for each
  // bucket in order, from a thread of the pool, with the region of each maximal subtree of the
  // range, left to right. The next call overwrites the regions.
  //
  // If a batch has fewer samples than lanes, some lanes are empty. They add zeros to the sums, and
  // the observations of the others are scaled up, so that the mean over the lanes `observing` is
  // the mean over the lanes with samples.
  struct Work {
    comm::LaneRange range;
    comm::LaneRange observing = {0, 0};  // lanes whose observations are averaged; empty: all
    int64_t batch = 0;
    int64_t step = 0;
    // Sent to all with the statistics.
    bool stop = false, trace = false, newcomers = false, leaves = false;
    // One entry per lane of the batch. Lanes of the range add the squares of their part of the
    // gradient, and their weight. Empty if not measured.
    std::span<LaneNoise> noise = {};
    // Outputs of a teacher for the samples of the range (nn/distillation.h); null without one.
    const Tensor* teacher = nullptr;
  };
  using Ready = std::function<void(int bucket, const std::vector<Memory>& partials)>;
  void compute(const Work& work, const Tensor& x, const Tensor& y, const Ready& ready);
  // Alternative for a worker without lanes: memory for the sums of the others, until the next step.
  Memory memory_without_lanes();

  // Reads the statistics at the beginning of a region summed over all lanes. Throws if the loss is
  // not finite, with the likely cause.
  StepStatistics read_statistics(std::span<const float> total, int64_t step) const;

  // The second half of a step: updates parameters from the region summed over all lanes.
  Update& update() { return update_; }
  // Valid once a program has been compiled.
  const SummedRegion& region() const { return region_; }

  // Progress of a group of lanes through its program.
  struct GroupProgress {
    int threads = 1;      // number of threads that run groups
    bool last = true;     // the last group on this thread
    int64_t samples = 0;  // of its largest lane; 0: the group is empty
    int kernel = 0;       // the next kernel; after the last one, the number of kernels
  };
  // Between steps: sets a function that is called before each kernel of a group and after its last
  // one, on its thread. Empty for none.
  void set_progress_callback(std::function<void(const GroupProgress&)> callback) {
    progress_callback_ = std::move(callback);
    keeps_together_ = progress_callback_ != nullptr;
  }
  // Between steps: with a progress callback, the lanes of a thread run together. `false` allows a
  // memory limit to divide them into several groups.
  void set_keeps_together(bool keeps) { keeps_together_ = keeps; }

  // Between steps: limits programs to a part of the network that another object runs
  // (train/parts/pipeline_runner.h). `restrict` limits the program for lanes with `samples`
  // samples. Empty: `compute` runs whole programs.
  using Restrict = std::function<void(Program&, int64_t samples)>;
  void set_part(Restrict restrict_program);
  // Between steps: limits programs to these shards. `exchange` returns the connection to workers
  // with the other shards, for lanes of the n-th concurrent group; it must stay valid until the
  // next call. Without arguments: all shards.
  using Exchanges = std::function<ShardExchange*(int number)>;
  void set_shards(const ShardPart& part, Exchanges exchange);
  void set_shards() { set_shards(ShardPart::all(options_.shards), {}); }
  // What shares a worker's memory limit: groups of lanes that run concurrently, and the threads of
  // each.
  struct Crowding {
    int groups, threads;
    bool operator==(const Crowding&) const = default;
  };
  Crowding crowding(int own_lanes) const;
  // Between steps: workers whose kernels must be the same pass the most of any of them. All then
  // recompute what that needs. Without arguments, this worker decides alone.
  void set_most_crowded(const Crowding& most);
  void set_most_crowded() { set_most_crowded({0, 0}); }
  // The options for running a lane's program.
  Program::RunOptions run_options(int64_t step, int lane) const;
  // Writes a lane's statistics from a frame that was run. Null for a lane without samples.
  void write_statistics(const Frame* frame, int lane, int64_t samples, const Work& work,
                        std::span<float> region) const;
  // The factor for the observations of a lane with samples.
  float observation_scale(const Work& work) const;
  Parameters& parameters() { return parameters_; }

  // Sets the minimum number of bytes of a bucket. Call before creating the strategy that exchanges
  // them.
  void set_bucket_bytes(size_t bytes);
  // Buckets for a global batch of this size. Compiles the needed programs.
  const std::vector<Bucket>& buckets(int64_t batch);

  // The graph compiled for lanes with that many samples.
  Graph graph(int64_t lane_batch) const { return graph(lane_batch, part_); }
  // The same graph with other shards.
  Graph graph(int64_t lane_batch, const ShardPart& part) const;
  // The compiled program of lanes with that many samples, for profiles and pipeline plans.
  const Program& program(int64_t lane_batch) { return compiled(lane_batch).program; }
  // Sets a function called for every kernel, from the thread of the lane. If empty, no clock is
  // read.
  void set_timing(std::function<void(int lane, const KernelTiming&)> timing) {
    timing_ = std::move(timing);
  }

 private:
  struct Slot;
  struct Assembly;

  struct Group;

  void drop_programs();
  // True if another device than the processor computes. It runs one lane at a time.
  bool on_device() const { return choices_.device && choices_.device != &cpu(); }
  void require_whole_network() const;
  int threads_each() const { return options_.threads / slots(); }
  // Largest number of lanes whose kernels run together.
  int lanes_together() const { return restrict_ || on_device() ? 1 : options_.lanes; }
  void divide_threads(int own_lanes);
  int most_together(const Work& work);
  bool match(int64_t samples, int64_t others);
  // Cuts the lanes of a thread into groups.
  std::vector<comm::LaneRange> groups(comm::LaneRange lanes, const Work& work);
  void run_group(Slot& slot, ThreadPool& pool, comm::LaneRange lanes, GroupProgress progress,
                 const Tensor& x, const Tensor& y, const Work& work, Assembly* assembly);
  void report(Group& group, size_t bucket, const Work& work, Assembly* assembly);
  Memory take_buffer(Slot& slot);
  // True if a device adds the gradients of lanes, so that they are copied once per step. Otherwise
  // each lane's gradients are copied.
  bool sums_on_device(const Work& work) const;
  Memory take_device_buffer(Slot& slot);
  void read_device_sums(Assembly& assembly) const;
  // Programs of different batch sizes sum the same values at the same places, but after different
  // kernels.
  struct Compiled {
    Program program;
    std::vector<int> ready;  // for each bucket, the planned kernel after which it is final
    bool alone = false;      // no room for kernels that run several lanes
  };
  Compiled& compiled(int64_t lane_batch);

  Model model_;
  TensorType x_, y_;
  Loss loss_;
  Parameters& parameters_;
  KernelChoices& choices_;
  StepperOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  Update update_;
  Restrict restrict_;
  Crowding most_ = {0, 0};  // see set_most_crowded
  ShardPart part_;
  Exchanges exchanges_;
  int own_lanes_;  // of this worker, in the last step; initially all
  float sums_per_lane_ = 0;
  // By samples of a lane and number of threads.
  std::map<std::pair<int64_t, int>, std::unique_ptr<Compiled>> programs_;
  std::shared_ptr<const RecomputeChoice> recomputed_;    // by lanes of all sizes
  std::optional<bool> recomputes_batch_norms_;           // likewise; as in the first program
  std::map<std::pair<int64_t, int64_t>, bool> matches_;  // of lanes of these sizes
  SummedRegion region_;
  std::vector<std::unique_ptr<Slot>> slots_;  // one per concurrent lane
  Mutex allocate_mutex_;
  Allocate allocate_sums_ ARTEL_GUARDED_BY(allocate_mutex_) = [](size_t bytes) {
    return cpu().allocate(bytes);
  };
  std::function<void(int, const KernelTiming&)> timing_;
  std::function<void(const GroupProgress&)> progress_callback_;
  bool keeps_together_ = false;
};

}  // namespace artel
