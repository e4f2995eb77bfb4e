// Tracks the occupied memory over time.
//
// A binary tree over time. Each node stores the memory occupied during all of its interval and the
// memory occupied at some time in it, as merged ranges. Allocation and search visit a few nodes per
// level and skip from range to range. Networks have few ranges, because the activations of a
// forward pass are adjacent.
#pragma once

#include <cstddef>
#include <vector>

namespace artel {

class OccupiedMemory {
 public:
  // For the times [0, times).
  explicit OccupiedMemory(int times);

  // [begin, end) is taken from time `first` to time `last`, both included.
  void take(int first, int last, size_t begin, size_t end);
  // The lowest offset from which on `bytes` bytes are free at all these times.
  size_t lowest_free(int first, int last, size_t bytes) const;

 private:
  struct Run {
    size_t begin, end;
  };
  // Disjoint and ascending.
  using Runs = std::vector<Run>;
  struct Part {
    Runs always, sometimes;
  };

  static void add(Runs& runs, Run run);
  void take(size_t part, int begin, int end, int first, int last, Run run);
  void collect(size_t part, int begin, int end, int first, int last,
               std::vector<const Runs*>& taken) const;

  int times_ = 1;
  std::vector<Part> parts_;  // the whole is number 1, the halves of i are 2 i and 2 i + 1
};

}  // namespace artel
