#include "artel/train/loop/traffic_meter.h"

namespace artel {

TrafficMeter::TrafficMeter(Cluster& cluster) : cluster_(cluster) {
  read();
  earlier_memberships_.all -= total_.all;
  earlier_memberships_.between_hosts -= total_.between_hosts;
}

void TrafficMeter::read() {
  const Membership& now = cluster_.membership();
  total_ = earlier_memberships_;
  if (const comm::Group* const group = now.world ? now.world.get() : now.group.get()) {
    total_.all += group->traffic();
    total_.between_hosts += group->traffic_between_hosts();
  }
  const auto rank = static_cast<size_t>(cluster_.rank());
  total_.worker = rank < now.members.size() ? now.members[rank].number : cluster_.rank();
}

Strategy::Traffic TrafficMeter::times_with(const Strategy& strategy) const {
  const Strategy::Traffic times = strategy.traffic();
  return {.waited_seconds = earlier_times_.waited_seconds + times.waited_seconds,
          .wire_seconds = earlier_times_.wire_seconds + times.wire_seconds};
}

void TrafficMeter::report(const Strategy& strategy, TrainingState& now) const {
  const Strategy::Traffic times = times_with(strategy);
  now.seconds_exchanging = times.waited_seconds;
  now.seconds_on_wire = times.wire_seconds;
  now.sent_bytes = total_.all.sent_bytes;
  now.received_bytes = total_.all.received_bytes;
}

void TrafficMeter::end_membership(const Strategy& strategy) {
  earlier_times_ = times_with(strategy);
  earlier_memberships_ = total_;
}

std::vector<WorkerTraffic> TrafficMeter::gather(comm::Group& group, const std::string& label,
                                                double timeout) const {
  std::vector<WorkerTraffic> all(static_cast<size_t>(group.size()));
  group.all_gather(std::as_bytes(std::span(&total_, 1)), std::as_writable_bytes(std::span(all)), {},
                   {.label = label, .timeout = timeout});
  return all;
}

}  // namespace artel
