// Contributions to some keys in one iteration, until all that belong together are there.
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
  // Throws if some of its lanes are there already, or if its partial sums do not fit them.
  void add(Contribution contribution);
  // Whether all lanes are there but those that `is_gone` names.
  bool complete(const std::function<bool(int lane)>& is_gone) const;

  // The sum over lanes of the keys [first, first + sum.size()), in the canonical order; in the
  // order of lanes where some are missing or keys are listed.
  void sum(uint64_t first, std::span<float> sum) const;

  // The squares of that sum over the keys of one segment, with the bits of optim::sum_of_squares.
  double sum_of_squares(const KeyRange& segment) const;

  // The keys that somebody contributed to, and a few between them, in ranges of at most `most`.
  std::vector<KeyRange> ranges(uint64_t most) const;

  Step step;
  bool to_state = false;
  bool held = false;     // applied when a worker says how to scale it
  bool settled = false;  // those who contributed can be answered: it is applied, or held back
  std::string squares;   // if it is held back

 private:
  KeyRange keys_;
  int lanes_;
  std::vector<Contribution> contributions_;  // ascending lanes
};

}  // namespace artel::ps
