// A cut through the contributions of workers that run apart: all up to some iteration of each
// worker, and none after it.
//
// Values are saved at a cut, so that each worker can later continue right after its last
// contribution that they contain. A server applies no contribution beyond the cut until the cut is
// lifted. Worker 0 makes the cut the same on all servers (Client::freeze). Pure bookkeeping: no
// threads, no time.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/ps/delay_clock.h"

namespace artel::ps {

// A request to freeze, with the least cut, and its answer.
struct Frozen {
  static constexpr int64_t kLost = -1;
  int64_t updates = 0;                 // of the weights, by all contributions before the cut
  std::vector<int64_t> finished = {};  // by worker: the last iteration before the cut, or kLost

  // Combines the answers of several servers.
  void merge(const Frozen& other);
};

std::string to_text(const Frozen& frozen);
// Throws an Error of kind corrupt.
Frozen frozen_from_text(std::string_view text);

class Cut {
 public:
  // Workers have contributed to these iterations, and there is no cut.
  explicit Cut(std::vector<int64_t> finished = {}) : begun_(std::move(finished)) {}

  // Records a contribution, which may be one of several to the same iteration.
  void contribute(int worker, int64_t iteration);
  bool admits(int worker, int64_t iteration) const;

  // Cuts after the iterations that workers have begun, and not before those in `least`, if there
  // are any. Throws if that has another number of workers.
  void set(std::span<const int64_t> least);
  void lift() { cut_.reset(); }
  bool is_set() const { return cut_.has_value(); }
  // The last iterations before the cut, by worker.
  const std::vector<int64_t>& iterations() const { return cut_ ? *cut_ : begun_; }
  // Whether all workers that are present have finished the iterations before it.
  bool reached(const DelayClock& clock) const;

 private:
  std::vector<int64_t> begun_;
  std::optional<std::vector<int64_t>> cut_;
};

}  // namespace artel::ps
