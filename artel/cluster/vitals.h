// What a worker or server says about itself twice a second, with its signs of life: counters that
// only grow, so whoever reads two of them knows what happened between.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "artel/cluster/mesh.h"
#include "artel/comm/transport.h"

namespace artel {

struct Vitals {
  double at = 0;        // seconds of its own clock; 0: it has said nothing yet
  int64_t step = 0;     // the last finished one; of a server: pushes that ended an iteration
  int64_t samples = 0;  // that it has computed
  int64_t lanes = 0;    // that it has; 0: not known
  int64_t cores = 0;    // that it may use
  // Seconds since it began to train, and how long of these it waited for data and for others.
  double training = 0, waiting_for_data = 0, waiting_for_workers = 0;
  double on_the_wire = 0;        // seconds of exchanging sums, most of them while it computes
  int64_t sent_bytes = 0;        // to other workers and servers
  int64_t received_bytes = 0;    // from them
  double processor_seconds = 0;  // of all its threads
  int64_t memory_bytes = 0;      // resident now
  int64_t staleness = 0;         // of a server: the sum over pushes
  MeshCoordinates mesh;
};
static_assert(sizeof(Vitals) <= comm::kVitalsBytes && sizeof(Vitals) % sizeof(uint64_t) == 0);

std::string to_bytes(const Vitals& vitals);
// Nothing if it is too short, cannot be, or nothing has been said yet.
std::optional<Vitals> vitals_from(std::string_view bytes);

// Where the threads that work leave what they count, for the one that tells it. They never wait.
class VitalSigns {
 public:
  VitalSigns() { set({}); }
  // From the thread of the steps. Time, processor and memory are of the moment of reading.
  void set(const Vitals& vitals);
  // A push reached a server; from any thread.
  void count_push(int64_t staleness);
  // From any thread.
  Vitals now() const;

 private:
  std::array<std::atomic<uint64_t>, sizeof(Vitals) / sizeof(uint64_t)> words_{};
  std::atomic<int64_t> pushes_{0}, staleness_{0};
};

}  // namespace artel
