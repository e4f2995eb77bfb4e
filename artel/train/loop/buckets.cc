#include "artel/train/loop/buckets.h"

#include <algorithm>

#include "artel/base/log.h"
#include "artel/base/text.h"
#include "artel/base/time.h"
#include "artel/comm/collectives/benchmark.h"
#include "artel/train/step/bucket_size.h"

namespace artel {

void reset_buckets(const TrainerState& state, Stepper& stepper) {
  const size_t asked = state.options.bucket_bytes;
  stepper.set_bucket_bytes(asked > 0 ? asked : StepperOptions().bucket_bytes);
}

void choose_buckets(TrainerState& state, Stepper& stepper) {
  comm::Group* const group = state.cluster.group();
  if (!group || state.options.bucket_bytes > 0) return;
  const std::vector<int> hosts = group->host_numbers();
  if (std::ranges::count(hosts, hosts.front()) == std::ssize(hosts)) return;
  const comm::LinkCost link = comm::calibrate(*group).between;
  const size_t bytes = bucket_bytes_for(link, stepper.region().bytes());
  stepper.set_bucket_bytes(bytes);
  if (state.cluster.rank() == 0)
    log(LogLevel::info, "buckets of {}, for {}/s and {} between hosts",
        format_bytes(static_cast<double>(bytes)), format_bytes(link.bandwidth),
        format_duration(link.latency));
}

}  // namespace artel
