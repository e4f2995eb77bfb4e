// Collects contributions to some keys in one iteration until all that belong together have arrived.
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
  // Throws if some of its lanes have arrived before, or if its partial sums do not match its lanes.
  void add(Contribution contribution);
  // Whether all lanes have arrived, except those for which `is_gone` holds.
  bool complete(const std::function<bool(int lane)>& is_gone) const;

  // The sum over lanes of the keys [first, first + sum.size()), in the canonical order; in the
  // order of lanes if some are missing or keys are listed.
  void sum(uint64_t first, std::span<float> sum) const;

  // The squares of that sum over the keys of one segment, with the bits of optim::sum_of_squares.
  double sum_of_squares(const KeyRange& segment) const;

  // The keys with contributions, and a few between them, in ranges of at most `most`.
  std::vector<KeyRange> ranges(uint64_t most) const;

  int64_t iteration = 0;
  Step step;
  bool to_state = false;
  bool held = false;     // applied when a worker says how to scale it
  bool settled = false;  // its contributors can be answered: it has been applied, or is held back
  std::string squares;   // if it is held back
  uint64_t needs = 0;    // messages that the copy of the range must have seen before the answers

 private:
  KeyRange keys_;
  int lanes_;
  std::vector<Contribution> contributions_;  // ascending lanes
};

}  // namespace artel::ps
