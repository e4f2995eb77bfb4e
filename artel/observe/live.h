// The live state of a run: one record per worker and server, a one-sentence diagnosis, and its
// display in a terminal. Worker 0 writes it to live.json in the run folder about once a second;
// `artel top` and the dashboard read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace artel::observe {

// Rates and shares cover the last seconds. They are empty if unknown.
struct LiveWorker {
  std::string name;  // "worker 3", "server 0"
  std::string host;
  int process = 0;
  bool server = false;
  int cores = 0;
  double silent_seconds = 0;  // since its last heartbeat
  std::string doing;          // "step 712", "checkpoint 700"
  int64_t step = 0;           // for a server: pushes that completed an iteration
  int64_t lanes = 0;          // 0 if unknown
  std::string mesh;           // mesh coordinates such as "data 1, stage 2"; empty without a mesh
  int stage = -1;             // its first pipeline stage; -1 without a pipeline
  std::optional<double> samples_per_second;
  // Shares of the worker's time. `computing`, `data` (waiting for data), and `workers` (waiting for
  // other workers) add up to 1. The worker that waits least waits only for the wire, so its share
  // is everyone's `wire_wait`; the rest of `workers` is spent waiting for slower workers. `wire` is
  // the share during which sums are in flight, mostly during computation.
  std::optional<double> computing, data, workers, wire;
  std::optional<double> wire_wait;                             // part of `workers`
  std::optional<double> seconds_per_lane;                      // computing time per step
  std::optional<double> sent_per_second, received_per_second;  // bytes
  std::optional<double> processor;                             // cores in use
  int64_t memory_bytes = 0;
  // Use of a device other than the CPU: share of the time with work in its queue, bytes copied in
  // both directions, and allocated memory.
  std::optional<double> device, device_copied_per_second;
  int64_t device_memory_bytes = 0;  // 0 without a device
  std::optional<double> staleness;  // for a server: mean staleness of pushes, in updates
};

struct LiveEvent {
  double at = 0;  // seconds since 1970
  int64_t step = 0;
  std::string kind;  // "worker", "loss", "disk", "slow", "failed"
  std::string text;
};

struct LiveRun {
  double at = 0;  // seconds since 1970
  std::string host;
  int process = 0;  // worker 0
  int64_t step = 0, steps = 0, epoch = 0, epochs = 0;
  std::optional<double> loss;
  double seconds = 0;  // training time
  double samples_per_second = 0;
  double seconds_left = 0;      // includes tests and checkpoints between epochs
  double seconds_per_step = 0;  // over the last seconds; 0 if unknown
  double forecast_seconds = 0;  // of a step, by `artel plan --measure`; 0 if unknown
  std::string strategy;
  std::string exchange;  // algorithm such as "ring, fast"; empty with one worker or if unknown
  int64_t lanes = 0;     // per batch; 0 if unknown
  std::string device;    // of worker 0; empty for the CPU
  std::vector<LiveWorker> workers;
  std::vector<LiveEvent> events;  // the most recent ones
};

std::string to_json(const LiveRun& run);
// Throws an Error that begins with `where` for an invalid record.
LiveRun live_from_json(std::string_view text, std::string_view where);

struct Diagnosis {
  enum class Kind { fine, silent, data, crowded, slow, wire, idle, unknown };
  Kind kind = Kind::unknown;
  std::string culprit;  // a worker's name; empty if no single worker is responsible
  std::string text;     // one sentence
};
// Sets `wire_wait` of all workers if it can be determined.
void separate_waiting(std::vector<LiveWorker>& workers);

// The main bottleneck of the run. A pure function of the record.
Diagnosis diagnose(const LiveRun& run);

struct LiveText {
  int width = 80;
  bool colour = false;
};
// A heading, the diagnosis, and a table with the culprit first. Omits the least important columns
// if they do not fit. `status` is a word such as "running".
std::string live_text(const LiveRun& run, std::string_view name, std::string_view status,
                      const LiveText& look);

}  // namespace artel::observe
