// Weights sharded over a group of workers (train/parts/shards.h). In a step, the weights of each
// bucket are gathered before the first kernel that reads them and released after the last one: once
// for the forward pass and once for the backward pass of each lane. The next bucket is gathered
// while lanes compute with this one.
//
// Workers that share memory read each other's parts in place (train/parts/shared_weights.h). Then
// nothing is sent, and a window only determines how long a worker maps pages of others.
//
// Concurrent lanes share gathered weights. All workers gather the same buckets in the same order,
// on a separate group, independently of the progress of their lanes.
#pragma once

#include <exception>
#include <map>
#include <optional>
#include <vector>

#include "artel/base/mutex.h"
#include "artel/comm/group.h"
#include "artel/train/parts/sharded_update.h"
#include "artel/train/parts/shared_weights.h"
#include "artel/train/step/stepper.h"

namespace artel {

// The range of kernels during which the weights of a bucket must be resident.
struct WeightWindow {
  int bucket = 0;
  int first = 0, last = 0;

  bool operator==(const WeightWindow&) const = default;
};

// The windows of a program, by start. A bucket stays resident if no other bucket is needed before
// its next use.
std::vector<WeightWindow> weight_windows(const Program& program, const SummedRegion& region);

class PassingWeights {
 public:
  // Borrows everything. `lanes` is this worker's number of lanes in each step. Collective.
  PassingWeights(comm::Group& group, Stepper& stepper, ShardedUpdate& update, int lanes);
  ~PassingWeights();
  PassingWeights(const PassingWeights&) = delete;
  PassingWeights& operator=(const PassingWeights&) = delete;

  // Call before and after the lanes of a step of `batch` samples, which the stepper runs in
  // between. Afterwards each worker has only its part, and no other worker reads it.
  void begin_step(int64_t batch);
  void end_step();
  // Makes each worker's memory private until the next step.
  void stop_sharing() { shared_.reset(); }

 private:
  void pass(const Stepper::GroupProgress& progress);
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
  std::vector<int> sequence_;  // buckets of the windows
  std::optional<SharedWeights> shared_;

  Mutex mutex_;
  Condition changed_;
  std::map<int64_t, std::vector<WeightWindow>> windows_
      ARTEL_GUARDED_BY(mutex_);  // by samples of a lane
  std::vector<comm::Handle> started_ ARTEL_GUARDED_BY(mutex_);
  int finished_ ARTEL_GUARDED_BY(mutex_) = 0;         // finished gathers
  std::vector<int> left_ ARTEL_GUARDED_BY(mutex_);    // by window: threads that are done with it
  std::vector<int> opened_ ARTEL_GUARDED_BY(mutex_);  // by bucket: open windows that need it
  std::exception_ptr error_ ARTEL_GUARDED_BY(mutex_);
};

}  // namespace artel
