// A check of the plan and of kernels while a lane runs: a step reads only what was written and
// writes only what is its own.
//
// Memory is filled with a NaN of a payload that no computation makes, before a step writes it and
// once nothing reads it any more. A NaN keeps its payload through arithmetic, so a step that leaves
// part of its output, or that computes with memory nobody wrote, shows the mark in its output. All
// else in the lane's memory must be the same after a step as before it.
#pragma once

#include <span>
#include <vector>

#include "artel/exec/plan.h"

namespace artel {

class MemoryMarks {
 public:
  // `pointers` is the memory of each buffer, `regions` all memory that a step could spoil. All are
  // borrowed.
  MemoryMarks(const Graph& graph, const Plan& plan, const std::vector<std::byte*>& pointers,
              std::vector<std::span<std::byte>> regions);

  void before(int step);
  // Throws an internal error that names the step, its layer and the element.
  void after(int step);

 private:
  std::span<std::byte> memory_of(int buffer) const;
  std::string describe(int step) const;
  void check_written(int step) const;
  void check_untouched(int step);

  const Graph& graph_;
  const Plan& plan_;
  const std::vector<std::byte*>& pointers_;
  std::vector<std::span<std::byte>> regions_;
  std::vector<std::vector<std::byte>> copies_;  // of the regions before the step
  std::vector<std::vector<int>> ending_;  // for each step, the memory that nothing reads after it
};

}  // namespace artel
