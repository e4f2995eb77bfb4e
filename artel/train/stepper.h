// One training step of a model on this worker: the lanes it was given, forward and backward, and
// the update.
//
// A global batch is cut into lanes. A lane is always computed with the same shapes, random numbers
// and kernels, whoever runs it; lanes run side by side on the threads of the worker, and their
// gradients are added in one canonical tree order (comm/lane_tree.h). So the weights after a step
// have the same bits for any number of threads and workers. With fewer lanes than threads, lanes
// run one after another and threads share each kernel.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "artel/comm/lane_tree.h"
#include "artel/exec/program.h"
#include "artel/nn/model.h"
#include "artel/optim/optimizer.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

struct StepperOptions {
  int threads = 1;
  int lanes = 1;  // of the global batch
  uint64_t seed = 0;
  size_t memory_limit = 0;
  bool check_numbers = false;
  std::function<bool(const std::string&)> trained = {};  // which parameters; absent: all
};

// A sum over some lanes, the whole subtree `lanes` of the canonical tree: gradients and observed
// statistics, then the weighted loss and the number of right answers.
struct PartialSum {
  comm::LaneRange lanes;
  std::byte* data = nullptr;
};

struct StepStatistics {
  double loss = 0;      // the mean over the global batch
  int64_t correct = 0;  // predictions whose largest output is the label; 0 for other targets
};

class Stepper {
 public:
  // `x` and `y` are the types of one sample. `parameters` and `choices` are borrowed.
  Stepper(const Model& model, const TensorType& x, const TensorType& y, const Loss& loss,
          const optim::OptimizerConfig& optimizer, Parameters& parameters, KernelChoices& choices,
          StepperOptions options);
  ~Stepper();

  ThreadPool& pool() { return *pool_; }

  // A whole step on one worker: all lanes of the global batch x, y.
  StepStatistics step(const Tensor& x, const Tensor& y, int64_t step, float learning_rate);

  // The first half: runs lanes [range.first, range.last) of a global batch of `batch` samples. `x`
  // and `y` hold the samples of these lanes only. Returns the sums of the maximal subtrees, left to
  // right, valid until the next call.
  std::vector<PartialSum> compute(comm::LaneRange range, const Tensor& x, const Tensor& y,
                                  int64_t batch, int64_t step);
  // The second half: updates parameters and states from the sum over all lanes.
  StepStatistics apply(std::byte* total, int64_t step, float learning_rate);

  // Bytes of a PartialSum.
  size_t sum_bytes() const;

  // Which rows of a global batch a lane has.
  static std::pair<int64_t, int64_t> rows_of_lane(int64_t batch, int lanes, int lane) {
    return {batch * lane / lanes, batch * (lane + 1) / lanes};
  }

  // The compiled program of lanes with that many samples, for profiles and plans.
  const Program& program(int64_t lane_batch);
  // Called for every kernel that runs, from the thread of the lane; absent: no clock is read.
  void set_timing(std::function<void(int lane, const StepTiming&)> timing) {
    timing_ = std::move(timing);
  }

  const optim::Optimizer& optimizer() const { return *optimizer_; }
  // The optimizer's state of one parameter, one row-major tensor for each slot, for checkpoints.
  NamedTensors optimizer_state() const;
  void set_optimizer_state(const NamedTensors& state);

 private:
  struct Slot;

  void run_lane(Slot& slot, ThreadPool& pool, int lane, const Tensor& x, const Tensor& y,
                int64_t batch, int64_t step);
  void collapse(ThreadPool& pool, std::vector<PartialSum>& sums, std::vector<std::byte*>& spare);
  std::byte* take_buffer(std::vector<std::byte*>& spare);

  Model model_;
  TensorType x_, y_;
  Loss loss_;
  Parameters& parameters_;
  KernelChoices& choices_;
  StepperOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  double clip_norm_;
  optim::OptimizerConfig config_;
  std::map<int64_t, std::unique_ptr<Program>> programs_;  // by samples of a lane
  std::vector<std::unique_ptr<Slot>> slots_;              // one for each lane that runs at a time
  std::mutex buffers_mutex_;
  std::vector<std::shared_ptr<std::byte>> buffers_;
  std::vector<std::shared_ptr<std::byte>> optimizer_memory_;  // by slot of the optimizer
  std::function<void(int, const StepTiming&)> timing_;
};

}  // namespace artel
