// Weights that lie in parts on the workers of a group (train/shards.h): in the course of a step,
// those of each bucket are gathered before the first kernel that reads them and given back after
// the last, once for the forward pass and once for the backward pass of each lane. The next bucket
// travels while lanes compute with this one.
//
// Workers that share memory read each other's parts where they lie (train/shared_weights.h): then
// nothing travels, and a window only says for how long a worker has pages of others before it.
//
// Lanes that run side by side share what is there. All workers gather the same buckets in the same
// order, on a group of their own, whatever their lanes are waiting for at that moment.
#pragma once

#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "artel/comm/group.h"
#include "artel/train/sharded_update.h"
#include "artel/train/shared_weights.h"
#include "artel/train/stepper.h"

namespace artel {

// The kernels between which the weights of a bucket have to be there.
struct WeightWindow {
  int bucket = 0;
  int first = 0, last = 0;

  bool operator==(const WeightWindow&) const = default;
};

// In the order in which they open. A bucket that no other one would follow before it is needed
// again stays.
std::vector<WeightWindow> weight_windows(const Program& program, const SummedRegion& region);

class PassingWeights {
 public:
  // All is borrowed. `lanes` are this worker's in each step. A collective call.
  PassingWeights(comm::Group& group, Stepper& stepper, ShardedUpdate& update, int lanes);
  ~PassingWeights();
  PassingWeights(const PassingWeights&) = delete;
  PassingWeights& operator=(const PassingWeights&) = delete;

  // Before and after the lanes of a step of `batch` samples, which the stepper runs in between.
  // Afterwards each worker has only its part, which nobody else reads any more.
  void begin_step(int64_t batch);
  void end_step();
  // From now until the next step, each worker's memory is its own.
  void rest() { shared_.reset(); }

 private:
  void pass(const Stepper::Passage& passage);
  const std::vector<WeightWindow>& windows(int64_t samples);
  int bucket_of(int number) const { return sequence_[static_cast<size_t>(number)]; }
  void start_until(int count);
  void gather(comm::Group& group, int bucket);
  void await(int number);
  void leave(int number, int threads);
  bool is_shared() const { return shared_ && shared_->works(); }

  comm::Group group_;
  Stepper& stepper_;
  ShardedUpdate& update_;
  bool has_lanes_;
  std::vector<int> sequence_;  // the buckets of the windows
  std::optional<SharedWeights> shared_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int64_t, std::vector<WeightWindow>> windows_;  // by samples of a lane
  std::vector<comm::Handle> started_;
  int finished_ = 0;         // gathers
  std::vector<int> left_;    // by window: threads that are done with it
  std::vector<int> opened_;  // by bucket: windows in which it is needed
  std::exception_ptr error_;
};

}  // namespace artel
