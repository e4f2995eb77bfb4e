// One training step of a model on this worker: the lanes it was given, forward and backward, and
// the update.
//
// A global batch is cut into lanes. A lane is always computed with the same shapes, random numbers
// and kernels, whoever runs it; lanes run side by side on the threads of the worker, and their
// gradients are added in one canonical tree order (comm/lane_tree.h). So the weights after a step
// have the same bits for any number of threads and workers. With fewer lanes than threads, lanes
// run one after another and threads share each kernel.
//
// What is summed over lanes lies in one region: loss and accuracy, gradients in the order in
// which they become ready, observations of states; cut into buckets. A bucket is handed out as soon
// as all local lanes have it, while the backward pass goes on.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "artel/comm/lane_tree.h"
#include "artel/exec/program.h"
#include "artel/nn/model.h"
#include "artel/train/update.h"

namespace artel {

struct StepperOptions {
  int threads = 1;
  int lanes = 1;  // of the global batch
  uint64_t seed = 0;
  size_t memory_limit = 0;
  bool check_numbers = false;
  bool check_memory = false;
  bool mixtures = false;  // targets are shares of classes, as mixup makes them
  std::function<bool(const std::string&)> trained = {};  // which parameters; absent: all
  // Memory for sums, zeroed and aligned; absent: ordinary memory.
  std::function<std::shared_ptr<std::byte>(size_t)> allocate_sums = {};
  size_t bucket_bytes = size_t{4} << 20;
};

struct StepStatistics {
  double loss = 0;      // the mean over the global batch
  int64_t correct = 0;  // predictions whose largest output is the label (of a mixture, the one with
                        // the largest share); 0 for other targets
  int64_t labels = 0;   // that there are to be right about
  bool stop = false;    // some worker wants to stop after this step
};

class Stepper {
 public:
  // `x` and `y` are the types of one sample. `parameters` and `choices` are borrowed.
  Stepper(const Model& model, const TensorType& x, const TensorType& y, const Loss& loss,
          const optim::OptimizerConfig& optimizer, Parameters& parameters, KernelChoices& choices,
          StepperOptions options);
  ~Stepper();

  ThreadPool& pool() { return *pool_; }
  int lanes() const { return options_.lanes; }

  // Which rows of a global batch a lane has.
  static std::pair<int64_t, int64_t> rows_of_lane(int64_t batch, int lanes, int lane) {
    return {batch * lane / lanes, batch * (lane + 1) / lanes};
  }

  // A whole step on one worker: all lanes of the global batch x, y.
  StepStatistics step(const Tensor& x, const Tensor& y, int64_t step, float learning_rate);

  // The first half of a step: runs lanes [range.first, range.last) of a global batch of `batch`
  // samples; `x` and `y` hold the samples of these lanes only. `ready(b, partials)` is called for
  // each bucket in order, from a thread of the pool, with one pointer (to the beginning of the
  // region) for each of the maximal subtrees of the range, left to right; they stay valid until the
  // next call.
  //
  // Lanes may be empty, where the batch is smaller than they are many. They add zeros to the sums,
  // and what the others have observed counts for them too: so the mean over the lanes `observing`
  // is that over the lanes that have seen something.
  struct Work {
    comm::LaneRange range;
    comm::LaneRange observing = {0, 0};  // whose observations are averaged; none: all
    int64_t batch = 0;
    int64_t step = 0;
    bool stop = false;  // carried to all workers with the statistics
  };
  using Ready = std::function<void(int bucket, const std::vector<std::byte*>& partials)>;
  void compute(const Work& work, const Tensor& x, const Tensor& y, const Ready& ready);

  // Of the region summed over lanes. Throws if the loss is not finite, and says what is known of
  // the cause.
  StepStatistics read_statistics(const std::byte* total, int64_t step) const;

  // The second half: what makes new parameters of the region summed over lanes.
  Update& update() { return update_; }
  // Known once something is compiled.
  const SummedRegion& region() const { return region_; }

  // Of a global batch size; compiles the programs it needs.
  const std::vector<Bucket>& buckets(int64_t batch);

  // The compiled program of lanes with that many samples, for profiles and plans.
  const Program& program(int64_t lane_batch) { return compiled(lane_batch).program; }
  // Called for every kernel that runs, from the thread of the lane; absent: no clock is read.
  void set_timing(std::function<void(int lane, const StepTiming&)> timing) {
    timing_ = std::move(timing);
  }

 private:
  struct Slot;
  struct Assembly;

  void run_lane(Slot& slot, ThreadPool& pool, int lane, const Tensor& x, const Tensor& y,
                const Work& work, Assembly* assembly);
  std::byte* take_buffer(Slot& slot);
  // By what a lane with samples multiplies its observations.
  float observation_scale(const Work& work) const;
  void merge(ThreadPool& pool, std::byte* into, const std::byte* from, size_t offset, size_t bytes);
  // Programs of different batch sizes sum the same things at the same places, but at other steps.
  struct Compiled {
    Program program;
    std::vector<int> ready;  // for each bucket, the planned step after which it is final
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
  std::map<int64_t, std::unique_ptr<Compiled>> programs_;  // by samples of a lane
  SummedRegion region_;
  std::vector<std::unique_ptr<Slot>> slots_;  // one for each lane that runs at a time
  std::mutex buffers_mutex_;
  std::vector<std::shared_ptr<std::byte>> buffers_;
  std::function<void(int, const StepTiming&)> timing_;
};

}  // namespace artel
