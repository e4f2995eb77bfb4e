#include "artel/cli/step_bench.h"

#include <ctime>

#include "artel/base/time.h"
#include "artel/exec/devices.h"
#include "artel/predict/batches.h"
#include "artel/train/name_prefixes.h"

namespace artel::cli {
namespace {

// Normal numbers, or whole ones below `limit`.
Tensor random_tensor(const TensorType& type, int64_t limit, uint64_t seed) {
  Tensor tensor(type.shape, type.dtype);
  Random random({seed});
  if (type.dtype == DType::i32)
    for (int32_t& value : tensor.values<int32_t>())
      value = static_cast<int32_t>(random.below(static_cast<uint64_t>(limit)));
  else
    for (float& value : tensor.values<float>()) value = random.normal();
  return tensor;
}

// Processor time of all threads of this process.
double cpu_seconds() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

}  // namespace

StepBench::StepBench(const Model& model, StepBenchOptions options)
    : options_(std::move(options)), trainer_(cluster_, model) {
  if (options_.threads == 0) options_.threads = cluster_.cores();
  choices_.device = &device_by_name(options_.device);
  trainer_.build(options_.x);
  stepper_ =
      std::make_unique<Stepper>(model, options_.x, options_.y, loss_by_name(options_.loss),
                                options_.optimizer, trainer_.parameters(), choices_,
                                StepperOptions{.threads = options_.threads,
                                               .lanes = options_.lanes,
                                               .trained = [this](const std::string& name) {
                                                 return !begins_with_any(name, options_.freeze);
                                               }});
  const int64_t limit = std::max<int64_t>(1, options_.classes);
  x_ = random_tensor(batch_of(options_.x, options_.batch), limit, 1);
  y_ = random_tensor(batch_of(options_.y, options_.batch), limit, 2);
}

StepBench::Result StepBench::run(double seconds) {
  Result result;
  const auto rate = static_cast<float>(options_.optimizer.learning_rate);
  const Clock::time_point begin = Clock::now();
  const double cpu_begin = cpu_seconds();
  const CopiedBytes copied_before = device().copied();
  do {
    stepper_->step(x_, y_, ++step_, rate);
    ++result.steps;
    result.seconds = seconds_between(begin, Clock::now());
  } while (result.seconds < seconds);
  result.cpu_seconds = cpu_seconds() - cpu_begin;
  const CopiedBytes copied = device().copied();
  result.copied = {.to_device = copied.to_device - copied_before.to_device,
                   .from_device = copied.from_device - copied_before.from_device};
  return result;
}

}  // namespace artel::cli
