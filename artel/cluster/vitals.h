// Counters that a worker or server sends with its heartbeats twice a second. They only grow, so the
// difference of two records gives the activity between them.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "artel/cluster/mesh.h"
#include "artel/comm/transports/transport.h"

namespace artel {

struct Vitals {
  double at = 0;        // seconds of its own clock; 0 before the first record
  int64_t step = 0;     // last finished step; for a server, pushes that completed an iteration
  int64_t samples = 0;  // computed so far
  int64_t lanes = 0;    // current number; 0 if unknown
  int64_t cores = 0;    // available to it
  // Seconds of training, and those spent waiting for data and for other workers.
  double training = 0, waiting_for_data = 0, waiting_for_workers = 0;
  double on_the_wire = 0;        // seconds of exchanging sums, mostly during computation
  int64_t sent_bytes = 0;        // to other workers and servers
  int64_t received_bytes = 0;    // from other workers and servers
  double processor_seconds = 0;  // of all its threads
  int64_t memory_bytes = 0;      // resident now
  int64_t staleness = 0;         // for a server: sum over pushes
  // Use of a device other than the CPU: seconds with work in its queue, allocated memory, and bytes
  // copied in both directions.
  double device_seconds = 0;
  int64_t device_memory_bytes = 0, device_copied_bytes = 0;
  MeshCoordinates mesh;
};
static_assert(sizeof(Vitals) <= comm::kVitalsBytes && sizeof(Vitals) % sizeof(uint64_t) == 0);

std::string to_bytes(const Vitals& vitals);
// Empty if the bytes are too short or invalid, or before the first record.
std::optional<Vitals> vitals_from(std::string_view bytes);

// Lock-free exchange of counters between the working threads and the heartbeat thread.
class VitalSigns {
 public:
  VitalSigns() { set({}); }
  // Called from the thread of the steps. Time, processor, and memory are measured when read.
  void set(const Vitals& vitals);
  // Counts a push at a server. Any thread may call it.
  void count_push(int64_t staleness);
  // The current counters. Any thread may call it.
  Vitals now() const;

 private:
  std::array<std::atomic<uint64_t>, sizeof(Vitals) / sizeof(uint64_t)> words_{};
  std::atomic<int64_t> pushes_{0}, staleness_{0};
};

}  // namespace artel
