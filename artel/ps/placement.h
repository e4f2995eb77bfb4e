// The placement of key ranges on servers: a primary for each range, and optionally a backup.
//
// A pure function of the servers' holdings. In a running training, each range continues from the
// server with the most changes, and servers without their assigned ranges receive a copy. Ranges
// move only to balance the load.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace artel::ps {

// A server's state of a range.
struct Holding {
  int range = 0;
  uint64_t changes = 0;  // number of applied changes; equal numbers mean equal values
  bool begun = false;    // true once workers have contributed
  int64_t latest = 0;    // the last iteration of which something is in it

  bool operator==(const Holding&) const = default;
};

struct Placement {
  int primary = 0;               // server that answers workers; servers count from 0
  int backup = -1;               // server with a copy; -1 if none
  int source = -1;               // server that has the range now; -1 before its setup
  std::vector<int> copies = {};  // servers that receive a copy from the source
  int64_t latest = 0;            // the last iteration of which something is in it

  bool operator==(const Placement&) const = default;
};

// `held` lists the holdings of each server. Throws if no server has a range of a running training.
// Before the training starts, holdings are ignored and all sources are -1.
std::vector<Placement> place_ranges(int ranges, const std::vector<std::vector<Holding>>& held,
                                    int replicas);

std::string to_text(const std::vector<Holding>& held);
std::string to_text(const std::vector<Placement>& places);
// Throw an Error of kind corrupt.
std::vector<Holding> holdings_from_text(std::string_view text);
std::vector<Placement> placements_from_text(std::string_view text);

}  // namespace artel::ps
