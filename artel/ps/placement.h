// Which server keeps which range of keys: one answers for it, and another one may keep a copy.
//
// A pure function of what the servers have, so that whoever asks gets the same answer. Of a run
// that is under way, each range goes on from the server that has seen most of it; servers that
// lack what they are to keep get a copy. Work is spread evenly, and ranges move only for that.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace artel::ps {

// What a server has of a range.
struct Holding {
  int range = 0;
  uint64_t changes = 0;  // that it has seen; equal numbers mean equal values
  bool begun = false;    // workers have contributed to it
  int64_t latest = 0;    // the last iteration of which something is in it

  bool operator==(const Holding&) const = default;
};

struct Placement {
  int primary = 0;               // the server that answers; servers count from 0
  int backup = -1;               // keeps a copy; -1: nobody does
  int source = -1;               // has it; -1: it is still to be set up
  std::vector<int> copies = {};  // servers that get a copy from the source
  int64_t latest = 0;            // the last iteration of which something is in it

  bool operator==(const Placement&) const = default;
};

// `held`: what each server has. Throws if nobody has a range of a run that has begun. If it has
// not, what servers have is worth nothing: all sources are -1.
std::vector<Placement> place_ranges(int ranges, const std::vector<std::vector<Holding>>& held,
                                    int replicas);

std::string to_text(const std::vector<Holding>& held);
std::string to_text(const std::vector<Placement>& places);
// Throw an Error of kind corrupt.
std::vector<Holding> holdings_from_text(std::string_view text);
std::vector<Placement> placements_from_text(std::string_view text);

}  // namespace artel::ps
