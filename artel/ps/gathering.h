// Collects the contributions to some keys in one iteration until all have arrived.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "artel/ps/contribution.h"
#include "artel/ps/key_ranges.h"
#include "artel/ps/rules/rule.h"

namespace artel::ps {

class Gathering {
 public:
  Gathering(const KeyRange& keys, int lanes) : keys_(keys), lanes_(lanes) {}

  const KeyRange& keys() const { return keys_; }
  // Throws if some of its lanes have already arrived, or if its partial sums do not match its
  // lanes.
  void add(Contribution contribution);
  // True if all lanes have arrived, except those for which `is_gone` holds.
  bool complete(const std::function<bool(int lane)>& is_gone) const;

  // Sums over lanes for the keys [first, first + sum.size()), in the canonical order, or in the
  // order of lanes if some are missing or keys are listed, unless all list the same.
  void sum(uint64_t first, std::span<float> sum) const;

  // The sum of squares of that sum over one segment, with the bits of optim::sum_of_squares.
  double sum_of_squares(const KeyRange& segment) const;

  // Ranges of at most `most` keys that cover all keys with contributions. Small gaps are included,
  // unless all contributions list the same keys.
  std::vector<KeyRange> ranges(uint64_t most) const;

  int64_t iteration = 0;
  Step step;
  bool to_state = false;
  bool same_list = false;  // contributions list the same keys
  bool held = false;       // held back until a worker sends the scale
  bool settled = false;    // applied or held back; its contributors can be answered
  std::string squares;     // only if held back
  uint64_t needs = 0;      // messages that the backup must have acknowledged before the answers

 private:
  KeyRange keys_;
  int lanes_;
  std::vector<Contribution> contributions_;  // ascending lanes
};

}  // namespace artel::ps
