// The configuration of the servers, sent by worker 0 at the start of a run. A second setup may
// change the handling of contributions and the delay, but not the values, keys, or update rule.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artel/optim/options.h"
#include "artel/ps/key_ranges.h"

namespace artel::ps {

enum class SegmentKind {
  weight,   // the update rule applies
  average,  // follows the mean of the pushes over lanes (running statistics)
  sum,      // becomes the sum of the pushes (loss, counts)
};

// A tensor, or another sequence of keys with the same treatment.
struct Segment {
  std::string name;
  KeyRange keys;
  SegmentKind kind = SegmentKind::weight;
  bool decays = true;  // weight: weight decay and penalties apply
  float momentum = 0;  // average: weight of a new value
};

struct Setup {
  KeyRange keys;                  // of this server
  std::vector<Segment> segments;  // of all servers, ascending
  optim::Options rule;            // see make_rule
  // Adds the contributions of all workers and applies them as one. Otherwise each is applied when
  // it arrives.
  bool together = true;
  int lanes = 1;                     // in a complete sum
  int observations = 0;              // in a complete sum of `average` segments; 0 means `lanes`
  std::optional<int64_t> delay = 0;  // empty means no limit
  int64_t finished = 0;              // iterations before this run
  int64_t updates = 0;               // weight updates before this run
  // By rank. Empty if all workers have finished the same iterations and their numbers in the run
  // are their ranks.
  struct Worker {
    int number = 0;
    int64_t finished = 0;
    bool operator==(const Worker&) const = default;
  };
  std::vector<Worker> workers = {};
  std::string compress;  // codec of coded values
};

std::string to_text(const Setup& setup);
// Throws an Error of kind corrupt.
Setup setup_from_text(std::string_view text);

}  // namespace artel::ps
