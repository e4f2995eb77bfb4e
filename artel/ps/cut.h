// A consistent cut through the contributions of asynchronous workers. It contains all contributions
// of each worker up to one iteration, and none after it.
//
// Checkpoints are saved at a cut, so each worker can resume right after its last saved
// contribution. A server applies no contribution beyond the cut until the cut is lifted. Worker 0
// sets the same cut on all servers (Client::freeze). Without threads or clocks.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/ps/delay_clock.h"

namespace artel::ps {

// The minimum cut in a freeze request, and the cut in its answer.
struct Frozen {
  static constexpr int64_t kLost = -1;
  int64_t updates = 0;                 // weight updates before the cut
  std::vector<int64_t> finished = {};  // by worker: last iteration before the cut, or kLost
  // The lanes of each worker, by first iteration, from the slowest worker on (server 0 only).
  std::map<int64_t, std::vector<int>> shares = {};

  // Combines the answers of several servers.
  void merge(const Frozen& other);
};

std::string to_text(const Frozen& frozen);
// Throws an Error of kind corrupt.
Frozen frozen_from_text(std::string_view text);

class Cut {
 public:
  // `finished` are the last iterations to which workers have contributed. No cut is set.
  explicit Cut(std::vector<int64_t> finished = {}) : begun_(std::move(finished)) {}

  // Records a contribution. Several may belong to the same iteration.
  void contribute(int worker, int64_t iteration);
  bool admits(int worker, int64_t iteration) const;

  // Cuts after the iterations that workers have begun, or after those in `least` if they are later.
  // `least` may be empty. Throws if it has another number of workers.
  void set(std::span<const int64_t> least);
  void lift() { cut_.reset(); }
  bool is_set() const { return cut_.has_value(); }
  // The last iterations before the cut, by worker.
  const std::vector<int64_t>& iterations() const { return cut_ ? *cut_ : begun_; }
  // True if all present workers have finished the iterations before the cut.
  bool reached(const DelayClock& clock) const;

 private:
  std::vector<int64_t> begun_;
  std::optional<std::vector<int64_t>> cut_;
};

}  // namespace artel::ps
