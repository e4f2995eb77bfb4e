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

#include "artel/comm/codecs/error_feedback.h"
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
  bool check_memory = false;
  bool mixtures = false;  // targets are shares of classes, as mixup makes them
  std::function<bool(const std::string&)> trained = {};  // which parameters; absent: all
  // Memory for sums, zeroed and aligned; absent: ordinary memory.
  std::function<std::shared_ptr<std::byte>(size_t)> allocate_sums = {};
  size_t bucket_bytes = size_t{4} << 20;
};

// A part of the summed region. The first bucket begins with the statistics.
struct Bucket {
  size_t offset = 0, bytes = 0;
  // The gradients in it, from `first_gradient` to `gradients_end`, with zeros between them; what is
  // before and behind them is statistics and observations.
  struct Gradient {
    size_t offset = 0;         // bytes in the region
    comm::MatrixShape matrix;  // what low-rank codecs take it for
    size_t bytes() const { return matrix.size() * sizeof(float); }
  };
  size_t first_gradient = 0, gradients_end = 0;
  std::vector<Gradient> gradients = {};
  bool contains(size_t at) const { return at >= offset && at < offset + bytes; }
};

// What low-rank codecs take a tensor for: its first axis by all others.
comm::MatrixShape matrix_of(const Shape& shape);

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

  // The second half: reads the statistics (throws if the loss is not finite, and says what is known
  // of the cause), then updates the parameters and states of one bucket after another. `total` is
  // the region summed over lanes.
  StepStatistics read_statistics(const std::byte* total, int64_t step) const;
  struct Update {
    int64_t step = 0;
    float learning_rate = 0;
    float gradient_scale = 1;
    int lanes = 0;  // that were summed; 0: all
  };
  void apply_bucket(int bucket, const std::byte* total, const Update& update);
  // What clipping the norm of the whole gradient, `scale` times the sum, multiplies it by.
  float clip_scale(const std::byte* total, float scale = 1);
  // The same where the squares of the sum, added up parameter by parameter, are known.
  float clip_scale(double squares, float scale = 1) const;
  bool clips() const { return config_.clip_norm > 0; }

  // Of a global batch size; compiles the programs it needs.
  const std::vector<Bucket>& buckets(int64_t batch);
  size_t sum_bytes() const;

  // The compiled program of lanes with that many samples, for profiles and plans.
  const Program& program(int64_t lane_batch) { return compiled(lane_batch).program; }
  // Called for every kernel that runs, from the thread of the lane; absent: no clock is read.
  void set_timing(std::function<void(int lane, const StepTiming&)> timing) {
    timing_ = std::move(timing);
  }

  // What the region holds behind the statistics, in order, for those who keep parameters elsewhere.
  struct Summed {
    std::string name;
    size_t offset = 0;  // bytes in the region
    bool is_state = false;
    float momentum = 0;            // of a state
    bool decays = true;            // of a parameter
    std::span<float> values = {};  // of the parameter or state, in the layout of the region
    std::vector<std::span<float>> optimizer = {};  // the optimizer's state of a parameter
  };
  std::vector<Summed> summed_parts();
  static constexpr size_t kStatisticsBytes = 64;  // at the beginning of the region

  const optim::Optimizer& optimizer() const { return *optimizer_; }
  // The optimizer's state, one row-major tensor for each slot and parameter, for checkpoints.
  NamedTensors optimizer_state() const;
  void set_optimizer_state(const NamedTensors& state);
  // The same as raw memory, one block for each slot, in the order of the parameters.
  std::vector<std::span<float>> optimizer_memory();

 private:
  struct Slot;
  struct Assembly;

  void run_lane(Slot& slot, ThreadPool& pool, int lane, const Tensor& x, const Tensor& y,
                const Work& work, Assembly* assembly);
  std::byte* take_buffer(Slot& slot);
  // By what a lane with samples multiplies its observations.
  float observation_scale(const Work& work) const;
  void merge(ThreadPool& pool, std::byte* into, const std::byte* from, size_t offset, size_t bytes);
  void follow(const GradientSlot& slot, std::span<float> state, std::span<const float> observed,
              int lanes) const;
  std::span<const float> summed(const std::byte* total, const GradientSlot& slot) const;
  // Programs of different batch sizes sum the same things at the same places, but at other steps.
  struct Compiled {
    Program program;
    std::vector<int> ready;  // for each bucket, the planned step after which it is final
  };
  Compiled& compiled(int64_t lane_batch);
  const Program& any_program() const { return programs_.begin()->second->program; }

  Model model_;
  TensorType x_, y_;
  Loss loss_;
  Parameters& parameters_;
  KernelChoices& choices_;
  StepperOptions options_;
  std::unique_ptr<ThreadPool> pool_;
  optim::OptimizerConfig config_;
  std::unique_ptr<optim::Optimizer> optimizer_;
  std::map<int64_t, std::unique_ptr<Compiled>> programs_;  // by samples of a lane
  std::vector<Bucket> buckets_;
  std::vector<std::unique_ptr<Slot>> slots_;  // one for each lane that runs at a time
  std::mutex buffers_mutex_;
  std::vector<std::shared_ptr<std::byte>> buffers_;
  std::vector<std::shared_ptr<std::byte>> optimizer_memory_;  // by slot of the optimizer
  size_t optimizer_floats_ = 0;
  std::function<void(int, const StepTiming&)> timing_;
};

}  // namespace artel
