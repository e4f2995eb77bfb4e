// What a run is doing now: one record for each worker and server, what it means in one sentence,
// and how it looks in a terminal. Worker 0 writes it to live.json in the run's folder about once a
// second; `artel top` and the dashboard read it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace artel::observe {

// Rates and shares are those of the last seconds; nothing where they are not known (yet).
struct LiveWorker {
  std::string name;  // "worker 3", "server 0"
  std::string host;
  int process = 0;
  bool server = false;
  int cores = 0;
  double silent_seconds = 0;  // since its last sign of life
  std::string doing;          // "step 712", "checkpoint 700"
  int64_t step = 0;           // of a server: pushes that ended an iteration
  int64_t lanes = 0;          // 0: not known
  std::string mesh;           // where it is there: "data 1, stage 2"; empty: there is no mesh
  int stage = -1;             // its first one of a pipeline; -1: there is none
  std::optional<double> samples_per_second;
  // Shares of its time: computing, waiting for data and waiting for others make up all of it. The
  // worker that waits least waits for the wire alone, so as much of the others' waiting is for the
  // wire (`wire_wait`), and the rest for workers that are still computing.
  // Exchanging sums is beside that: most of it happens while it computes.
  std::optional<double> computing, data, workers, wire;
  std::optional<double> wire_wait;                             // a part of `workers`
  std::optional<double> seconds_per_lane;                      // of computing, in a step
  std::optional<double> sent_per_second, received_per_second;  // bytes
  std::optional<double> processor;                             // cores in use
  int64_t memory_bytes = 0;
  std::optional<double> staleness;  // of a server: updates that pushes missed, on average
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
  int process = 0;  // of worker 0
  int64_t step = 0, steps = 0, epoch = 0, epochs = 0;
  std::optional<double> loss;
  double seconds = 0;  // of training
  double samples_per_second = 0;
  double seconds_left = 0;
  std::string strategy;
  std::string exchange;  // how sums are added: "ring, fast"; empty: one worker, or not known
  int64_t lanes = 0;     // of a batch; 0: not known
  std::vector<LiveWorker> workers;
  std::vector<LiveEvent> events;  // the last ones
};

std::string to_json(const LiveRun& run);
// Throws an Error that begins with `where` for text that is not such a record.
LiveRun live_from_json(std::string_view text, std::string_view where);

struct Diagnosis {
  enum class Kind { fine, silent, data, crowded, slow, wire, idle, unknown };
  Kind kind = Kind::unknown;
  std::string culprit;  // a worker's name; empty: nobody in particular
  std::string text;     // one sentence
};
// Sets `wire_wait` of all workers, if it can be told.
void separate_waiting(std::vector<LiveWorker>& workers);

// What holds the run up most. A pure function of the record.
Diagnosis diagnose(const LiveRun& run);

struct LiveText {
  int width = 80;
  bool colour = false;
};
// A heading, the diagnosis, and a table with the culprit on top; columns that do not fit are left
// out from the least important on. `status` is a word such as "running".
std::string live_text(const LiveRun& run, std::string_view name, std::string_view status,
                      const LiveText& look);

}  // namespace artel::observe
