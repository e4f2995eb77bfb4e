#include "artel/train/parts/passing_weights.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/exec/plan/excerpt.h"
#include "artel/train/parts/crowding.h"

namespace artel {
std::vector<WeightWindow> weight_windows(const Program& program, const SummedRegion& region) {
  const Plan& plan = program.plan();
  std::map<std::string, int> bucket_of;
  for (const SummedRegion::Part& part : region.parts())
    for (size_t b = 0; b < region.buckets().size(); ++b)
      if (region.buckets()[b].contains(part.offset)) bucket_of[part.name] = static_cast<int>(b);
  std::map<std::pair<int, bool>, WeightWindow> found;  // by bucket, forward before backward
  for (int kernel = 0; kernel < static_cast<int>(plan.kernels.size()); ++kernel)
    for (const int input : plan.kernels[kernel].inputs) {
      const Buffer& buffer = plan.buffers[viewed(plan, input)];
      if (buffer.region != Region::parameters) continue;
      const auto bucket = bucket_of.find(program.graph().value(buffer.value).name);
      if (bucket == bucket_of.end()) continue;  // frozen: all workers have it
      const bool backward = kernel >= plan.forward_end;
      found.try_emplace({bucket->second, backward}, WeightWindow{bucket->second, kernel, kernel})
          .first->second.last = kernel;
    }
  std::vector<WeightWindow> windows;
  for (const auto& [key, each] : found) {
    const WeightWindow& window = each;  // clang 14 cannot capture a part of a pair
    const bool again = !windows.empty() && windows.back().bucket == window.bucket;
    const bool others = std::any_of(found.begin(), found.end(), [&](const auto& other) {
      return again && other.second.first > windows.back().last && other.second.first < window.first;
    });
    if (again && !others)
      windows.back().last = window.last;
    else
      windows.push_back(window);
  }
  std::stable_sort(windows.begin(), windows.end(),
                   [](const WeightWindow& a, const WeightWindow& b) { return a.first < b.first; });
  return windows;
}

PassingWeights::PassingWeights(comm::Group& group, Stepper& stepper, ShardedUpdate& update,
                               int lanes)
    : group_(group.split(0)),
      stepper_(stepper),
      update_(update),
      has_lanes_(lanes > 0),
      opened_(static_cast<size_t>(update.shards().buckets())) {
  agree_on_crowding(group, stepper, lanes);
  stepper.set_progress_callback([this](const Stepper::GroupProgress& progress) { pass(progress); });
}

PassingWeights::~PassingWeights() {
  stepper_.set_progress_callback({});
  stepper_.set_most_crowded();
  for (comm::Handle& handle : started_) try {
      handle.wait(Deadline::never());
    } catch (const std::exception&) {
      // the failed group has recorded the cause
    }
}

// Lanes of different sizes run the same nodes, and read the same weights in the same order.
const std::vector<WeightWindow>& PassingWeights::windows(int64_t samples) {
  const MutexLock lock(mutex_);
  std::vector<WeightWindow>& found = windows_[samples];
  if (!found.empty()) return found;
  found = weight_windows(stepper_.program(samples), stepper_.region());
  std::vector<int> sequence;
  for (const WeightWindow& window : found) sequence.push_back(window.bucket);
  if (sequence_.empty()) sequence_ = sequence;
  require(
      sequence == sequence_, ErrorKind::internal,
      "[sharding] lanes of different sizes read weights in different orders, expected one order");
  return found;
}

void PassingWeights::begin_step(int64_t batch) {
  windows((batch + stepper_.lanes() - 1) / stepper_.lanes());
  {
    const MutexLock lock(mutex_);
    started_.clear();
    finished_ = 0;
    left_.assign(sequence_.size(), 0);
  }
  if (!shared_) shared_.emplace(group_, update_.weights_of_workers());
  // If lanes ran in several groups, gathered weights would stay until the last group is done.
  stepper_.set_keeps_together(!is_shared());
  if (is_shared()) shared_->exchange(group_);
}

// Groups of a thread run one after another. Weights stay until the last group is done.
void PassingWeights::pass(const Stepper::GroupProgress& progress) {
  const auto count = static_cast<int>(sequence_.size());
  if (progress.samples == 0) {
    for (int i = 0; progress.last && i < count; ++i) leave(i, progress.threads);
    return;
  }
  const std::vector<WeightWindow>& all = windows(progress.samples);
  for (int i = 0; progress.last && i < count; ++i)
    if (all[i].last == progress.kernel - 1) leave(i, progress.threads);
  for (int i = 0; i < count; ++i)
    if (all[i].first == progress.kernel) await(i);
}

// Starts gathers in the order of windows, whichever group needs one first.
void PassingWeights::start_until(int count) {
  const MutexLock lock(mutex_);
  while (static_cast<int>(started_.size()) < std::min(count, static_cast<int>(left_.size()))) {
    const int bucket = bucket_of(static_cast<int>(started_.size()));
    started_.push_back(group_.start([this, bucket](comm::Group& group) { gather(group, bucket); }));
  }
}

// Runs on the group's thread.
void PassingWeights::gather(comm::Group& group, int bucket) {
  try {
    bool is_here = false;
    {
      const MutexLock lock(mutex_);
      is_here = opened_[bucket]++ > 0;
    }
    update_.gather_weights(group, bucket, !is_here);
    const MutexLock lock(mutex_);
    ++finished_;
  } catch (...) {
    const MutexLock lock(mutex_);
    if (!error_) error_ = std::current_exception();
  }
  changed_.notify_all();
}

void PassingWeights::await(int number) {
  if (is_shared()) return;
  start_until(number + 2);
  MutexLock lock(mutex_);
  changed_.wait(lock, [&]() ARTEL_REQUIRES(mutex_) { return finished_ > number || error_; });
  if (error_) std::rethrow_exception(error_);
}

// The last thread that is done with a window closes it. A thread without work in it may call this
// before the weights arrive.
void PassingWeights::leave(int number, int threads) {
  {
    const MutexLock lock(mutex_);
    if (++left_[number] < threads) return;
  }
  if (is_shared()) return update_.forget_weights(bucket_of(number));
  await(number);
  const MutexLock lock(mutex_);
  if (--opened_[bucket_of(number)] == 0) update_.forget_weights(bucket_of(number));
}

// A worker without lanes still gives the others its parts.
void PassingWeights::end_step() {
  if (is_shared()) return group_.barrier({.label = "weights"});
  for (int i = 0; !has_lanes_ && i < static_cast<int>(sequence_.size()); ++i) leave(i, 1);
}

}  // namespace artel
