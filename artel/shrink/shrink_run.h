// Searches for the smallest version of a network that meets a target. Combines removed units,
// fine-tuning with the original network as the teacher, and quantised weights.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "artel/run/folder/saved_run.h"
#include "artel/shrink/quality.h"

namespace artel::shrink {

struct ShrinkTarget {
  double smaller = 1, faster = 1;    // least factors
  std::optional<double> worse = {};  // limit: percentage points of accuracy or % of perplexity
};

// Parses "4x smaller, 2x faster, at most 1 point worse", in any order. Throws if the text is empty
// or has another phrase.
ShrinkTarget parse_target(const std::string& text);

// One version of the network and its measurements.
struct Candidate {
  double units = 0;                // share of units removed
  int bits = 0;                    // per weight; 0 means fp32
  std::string folder = {};         // the candidate's run
  size_t bytes = 0;                // size of the weights
  double smaller = 1, faster = 1;  // factors relative to the original
  Quality quality = {};
  double lost = 0;  // see quality.h

  std::string name() const;
};

bool meets(const Candidate& candidate, const ShrinkTarget& target);
// The candidate with the least loss of quality that meets the target. Ties go to the faster one.
// Null if no candidate meets the target.
const Candidate* best_of(const std::vector<Candidate>& candidates, const ShrinkTarget& target);

struct ShrinkRunOptions {
  RunSource source;
  std::vector<double> units = {0.25, 0.5, 0.75};  // shares of removed units to try
  std::vector<std::string> keep = {};             // prefixes of layers that are left unchanged
  int64_t epochs = 2;                             // fine-tuning epochs
  std::vector<std::string> overrides = {};        // configuration of fine-tuning
  // Called after each candidate is measured. The first candidate is the original.
  std::function<void(const Candidate&)> after_each = {};
};

// Measures the original and all combinations. Each candidate is saved as a run below `folder`,
// which must not exist. Fine-tuning runs in this process and uses all of its cores.
std::vector<Candidate> try_combinations(const ShrinkRunOptions& options, const std::string& folder);

// Moves the candidate's run up to its parent `folder` and deletes all other candidates.
void keep_candidate(const Candidate& candidate, const std::string& folder);

}  // namespace artel::shrink
