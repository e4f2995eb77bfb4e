#include "artel/train/loop/clocks.h"

#include <algorithm>
#include <limits>

#include "artel/base/time.h"

namespace artel {
namespace {

constexpr int kRounds = 16;
constexpr uint32_t kTag = (1U << 22) - 2;  // unique among messages of whole groups

template <typename T>
void send(comm::Group& group, int peer, const T& value) {
  group.send(peer, kTag, std::as_bytes(std::span(&value, 1))).wait(Deadline::never());
}

template <typename T>
T receive(comm::Group& group, int peer) {
  T value{};
  group.receive(peer, kTag, std::as_writable_bytes(std::span(&value, 1))).wait(Deadline::never());
  return value;
}

// Runs on worker 0.
ClockReading reading_of(comm::Group& group, int peer) {
  ClockReading best = {.error = std::numeric_limits<double>::infinity()};
  for (int round = 0; round < kRounds; ++round) {
    const double begin = clock_seconds();
    send(group, peer, begin);
    const auto theirs = receive<double>(group, peer);
    const double half = (clock_seconds() - begin) / 2;
    if (half < best.error) best = {theirs, theirs - (begin + half), half};
  }
  return best;
}

}  // namespace

double clock_seconds() {
  return std::chrono::duration<double>(Clock::now().time_since_epoch()).count();
}

ClockReading compare_clocks(comm::Group* group) {
  ClockReading own = {.at = clock_seconds()};
  if (!group) return own;
  if (group->rank() > 0) {
    for (int round = 0; round < kRounds; ++round) {
      receive<double>(*group, 0);
      send(*group, 0, clock_seconds());
    }
    return receive<ClockReading>(*group, 0);
  }
  for (int peer = 1; peer < group->size(); ++peer) {
    const ClockReading theirs = reading_of(*group, peer);
    send(*group, peer, theirs);
    own.error = std::max(own.error, theirs.error);
  }
  return own;
}

double at_worker_0(double at, const ClockReading& first, const ClockReading& last) {
  if (!(last.at > first.at)) return at - last.ahead;
  const double passed = std::clamp((at - first.at) / (last.at - first.at), 0.0, 1.0);
  return at - (first.ahead + passed * (last.ahead - first.ahead));
}

}  // namespace artel
