// What to serve: worker 0 tells each server when a run begins. A second setup changes how
// contributions are taken and how far workers may run apart; values, keys and the update rule stay.
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
  average,  // tracks the mean over lanes of what is pushed (running statistics)
  sum,      // becomes the sum of what is pushed (loss, counts)
};

// A tensor, or another sequence of keys that are treated alike.
struct Segment {
  std::string name;
  KeyRange keys;
  SegmentKind kind = SegmentKind::weight;
  bool decays = true;  // weight: whether weight decay and penalties apply
  float momentum = 0;  // average: how fast it follows
};

struct Setup {
  KeyRange keys;                  // that this server has
  std::vector<Segment> segments;  // ascending; of all servers
  optim::Options rule;            // see make_rule
  // Contributions of all workers are added up and applied as one. Otherwise each is applied as it
  // arrives.
  bool together = true;
  int lanes = 1;                     // of a whole sum
  int observations = 0;              // in a whole sum of averaged segments; 0: as many as lanes
  std::optional<int64_t> delay = 0;  // nothing: no limit
  int64_t finished = 0;              // iterations before this run
  int64_t updates = 0;               // by the update rule, before this run
  // By rank, if some have finished more than others or have other numbers in the run than ranks.
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
