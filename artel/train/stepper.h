// One training step of a model on this worker: the lanes it was given, forward and backward, and
// the update.
//
// A global batch is cut into lanes. A lane is always computed with the same shapes, random numbers
// and kernels, whichever worker runs it, and the gradients of lanes are added in one canonical tree
// order (comm/lane_tree.h). So the weights after a step have the same bits for any number of
// threads and workers. Each thread runs its lanes together as groups, kernel by kernel: what they
// have in common, such as packed weights, is computed once, and gradients are added inside kernels.
// Neither changes bits. With fewer lanes than threads, threads share each kernel.
//
// What is summed over lanes lies in one region: loss and metrics, gradients in the order in
// which they become ready, observations of states; cut into buckets. A bucket is handed out as soon
// as all local lanes have it, while the backward pass goes on.
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
#include <mutex>
#include <vector>

#include "artel/comm/lane_tree.h"
#include "artel/exec/program.h"
#include "artel/nn/model.h"
#include "artel/train/gradient_noise.h"
#include "artel/train/update.h"

namespace artel {

struct StepperOptions {
  int threads = 1;
  int lanes = 1;   // of the global batch
  int shards = 1;  // of layers that are cut (graph/passes/split_layers.h)
  uint64_t seed = 0;
  size_t memory_limit = 0;  // of this worker's activations
  int lanes_together = 0;   // the most lanes of a group; 0: as many as memory_limit allows
  bool check_numbers = false;
  bool check_memory = false;
  std::function<bool(const std::string&)> trained = {};  // which parameters; absent: all
  size_t bucket_bytes = size_t{4} << 20;
  std::vector<Metric> metrics = {};  // computed in each step
};

// The beginning of a summed region, of all lanes or some of them.
struct StepStatistics {
  double weighted_loss = 0;  // the sum over the samples of weight times loss
  double weight = 0;         // the sum of the weights; without any, the number of samples
  double samples = 0;
  std::vector<double> sums;  // of the metrics (SummedRegion::metrics)
  bool stop = false;         // some worker wants to stop after this step
  bool trace = false;        // worker 0 wants the next steps traced
  bool newcomers = false;    // and lets others in after this step

  // Whether any sample counts. Otherwise the gradient is zero, and there is no loss.
  bool counts() const { return weight > 0; }
  // The mean over the samples, weighted.
  double loss() const { return counts() ? weighted_loss / weight : 0; }
  // The factor that makes the sum of gradients, in which each sample counts by its share of the
  // batch, that of the mean loss.
  float gradient_scale() const { return counts() ? static_cast<float>(samples / weight) : 1; }
};

class Stepper {
 public:
  // `x` and `y` are the types of one sample. `parameters` and `choices` are borrowed.
  Stepper(const Model& model, const TensorType& x, const TensorType& y, const Loss& loss,
          const optim::OptimizerConfig& optimizer, Parameters& parameters, KernelChoices& choices,
          StepperOptions options);
  ~Stepper();

  // Gives memory for sums, zeroed and aligned.
  using Allocate = std::function<Memory(size_t)>;
  // Between steps: gives back the memory of activations and sums until the next one.
  void rest();
  // Between steps: from now on sums lie in memory from there. At first it is ordinary memory.
  void set_sum_memory(Allocate allocate);

  ThreadPool& pool() { return *pool_; }
  KernelChoices& choices() { return choices_; }
  int lanes() const { return options_.lanes; }
  int shards() const { return options_.shards; }

  // How many groups of lanes run at the same time if this worker has all lanes: one on each thread,
  // or one on all if there are fewer lanes than threads.
  static int side_by_side(int lanes, int threads) { return lanes >= threads ? threads : 1; }
  // And how many regions of sums that takes: one for each subtree of a thread's lanes.
  static int sums_in_memory(int lanes, int threads);

  // Which rows of a global batch a lane has.
  static std::pair<int64_t, int64_t> rows_of_lane(int64_t batch, int lanes, int lane) {
    return {batch * lane / lanes, batch * (lane + 1) / lanes};
  }

  // A whole step on one worker: all lanes of the global batch x, y.
  StepStatistics step(const Tensor& x, const Tensor& y, int64_t step, float learning_rate);

  // The first half of a step: runs lanes [range.first, range.last) of a global batch of `batch`
  // samples; `x` and `y` hold the samples of these lanes only. `ready(b, partials)` is called for
  // each bucket in order, from a thread of the pool, with the region of each of the maximal
  // subtrees of the range, left to right; the next call writes into them again.
  //
  // If a batch has fewer samples than there are lanes, some lanes are empty. They add zeros to the
  // sums, and the observations of the others count for them, too: so the mean over the lanes
  // `observing` is that over the lanes that have seen something.
  struct Work {
    comm::LaneRange range;
    comm::LaneRange observing = {0, 0};  // whose observations are averaged; none: all
    int64_t batch = 0;
    int64_t step = 0;
    bool stop = false, trace = false, newcomers = false;  // carried to all with the statistics
    // One for each lane of the batch: those of the range get the squares of their part of the
    // gradient added, and their weight. Empty: not wanted.
    std::span<LaneNoise> noise = {};
  };
  using Ready = std::function<void(int bucket, const std::vector<Memory>& partials)>;
  void compute(const Work& work, const Tensor& x, const Tensor& y, const Ready& ready);
  // Instead, of a worker without lanes: memory for the sums of the others, until the next step.
  Memory memory_without_lanes();

  // Reads the beginning of the region summed over lanes. Throws if the loss is not finite, and says
  // what is known about the cause.
  StepStatistics read_statistics(std::span<const float> total, int64_t step) const;

  // The second half: makes new parameters from the region summed over lanes.
  Update& update() { return update_; }
  // Known once something is compiled.
  const SummedRegion& region() const { return region_; }

  // A group of lanes on its way through its program.
  struct Passage {
    int threads = 1;      // that run groups
    bool last = true;     // no other group follows on this thread
    int64_t samples = 0;  // of its largest lane; 0: it passes everything at once
    int kernel = 0;       // the next one; after the last, the number of kernels
  };
  // Between steps: from now on called before each kernel of a group and after its last, on its
  // thread. Absent: never.
  void set_passage(std::function<void(const Passage&)> passage) { passage_ = std::move(passage); }

  // Between steps: from now on programs are only a part of the network, and somebody else runs them
  // (train/pipeline_runner.h); `restrict` makes that part of a program for lanes with so many
  // samples. Absent: all of it, run by `compute`.
  using Restrict = std::function<void(Program&, int64_t samples)>;
  void set_part(Restrict restrict_program);
  // Between steps: from now on programs have only these shards. `exchange` gives those who have the
  // others, for the lanes that run as the n-th group side by side; it must live until the next
  // call. Without arguments: all shards.
  using Exchanges = std::function<ShardExchange*(int number)>;
  void set_shards(const ShardPart& part, Exchanges exchange);
  void set_shards() { set_shards(ShardPart::all(options_.shards), {}); }
  // How to run a lane's program.
  Program::RunOptions run_options(int64_t step, int lane) const;
  // Writes what a lane with that many samples adds to the statistics, from a frame that was run;
  // null: it has no samples.
  void write_statistics(const Frame* frame, int64_t samples, const Work& work,
                        std::span<float> region) const;
  // The factor by which a lane with samples multiplies its observations.
  float observation_scale(const Work& work) const;
  Parameters& parameters() { return parameters_; }

  // For a global batch of this size; compiles the programs that it needs.
  const std::vector<Bucket>& buckets(int64_t batch);

  // What the program of lanes with that many samples is compiled from.
  Graph graph(int64_t lane_batch) const { return graph(lane_batch, part_); }
  // The same with other shards.
  Graph graph(int64_t lane_batch, const ShardPart& part) const;
  // The compiled program of lanes with that many samples, for profiles and pipeline plans.
  const Program& program(int64_t lane_batch) { return compiled(lane_batch).program; }
  // Called for every kernel that runs, from the thread of the lane; absent: no clock is read.
  void set_timing(std::function<void(int lane, const KernelTiming&)> timing) {
    timing_ = std::move(timing);
  }

 private:
  struct Slot;
  struct Assembly;

  struct Group;

  void drop_programs();
  // Groups of lanes that run at the same time, in a frame for each lane.
  int frames() const { return restrict_ ? 1 : side_by_side(options_.lanes, options_.threads); }
  int most_together(const Work& work);
  bool match(int64_t samples, int64_t others);
  // Cuts the lanes of a thread into groups.
  std::vector<comm::LaneRange> groups(comm::LaneRange lanes, const Work& work);
  void run_group(Slot& slot, ThreadPool& pool, comm::LaneRange lanes, Passage passage,
                 const Tensor& x, const Tensor& y, const Work& work, Assembly* assembly);
  void report(Group& group, size_t bucket, const Work& work, Assembly* assembly);
  Memory take_buffer(Slot& slot);
  // Programs of different batch sizes sum the same things at the same places, but after other
  // kernels.
  struct Compiled {
    Program program;
    std::vector<int> ready;  // for each bucket, the planned kernel after which it is final
    bool alone = false;      // has no room for kernels that run several lanes
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
  ShardPart part_;
  Exchanges exchanges_;
  std::map<int64_t, std::unique_ptr<Compiled>> programs_;  // by samples of a lane
  std::shared_ptr<const RecomputeChoice> recomputed_;      // by lanes of all sizes
  std::map<std::pair<int64_t, int64_t>, bool> matches_;    // of two of them
  SummedRegion region_;
  std::vector<std::unique_ptr<Slot>> slots_;  // one for each lane that runs at a time
  Allocate allocate_sums_ = [](size_t bytes) { return cpu().allocate(bytes); };
  std::mutex allocate_mutex_;
  std::function<void(int, const KernelTiming&)> timing_;
  std::function<void(const Passage&)> passage_;
};

}  // namespace artel
