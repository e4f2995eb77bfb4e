// A check of the plan and of kernels while a frame runs: a kernel reads only what was written and
// writes only what is its own.
//
// Before a kernel writes memory, and after its last use, it is filled with a NaN whose payload no
// computation produces. A NaN keeps its payload through arithmetic, so a kernel that leaves part of
// its output unwritten, or computes with memory that nobody wrote, shows the mark in its output.
// All other memory, parameters and constants included, must be the same after a kernel as before
// it. Gaps between buffers are marked, too, for kernels that read beyond their inputs. Only the
// processor's memory is checked.
#pragma once

#include <span>
#include <vector>

#include "artel/exec/plan.h"

namespace artel {

class MemoryMarks {
 public:
  // `pointers` is the memory of each buffer, `regions` all memory that a kernel could spoil. All
  // are borrowed.
  MemoryMarks(const Graph& graph, const Plan& plan, const std::vector<std::byte*>& pointers,
              std::vector<std::span<std::byte>> regions);

  // Before the first kernel of a run, when its inputs are set: marks the rest of this region.
  void begin(std::span<std::byte> activations);
  void before(int kernel);
  // Throws an internal error that names the kernel, its layer and the element.
  void after(int kernel);
  // Marks what nothing reads after this kernel, its own unused outputs among them.
  void release(int kernel);

 private:
  std::span<std::byte> memory_of(int buffer) const;  // empty on another device
  std::string describe(int kernel) const;
  void check_written(int kernel) const;
  void check_untouched(int kernel);

  const Graph& graph_;
  const Plan& plan_;
  const std::vector<std::byte*>& pointers_;
  std::vector<std::span<std::byte>> regions_;
  std::vector<std::vector<std::byte>> copies_;  // of the regions before the kernel
  std::vector<std::vector<int>> ending_;  // for each kernel, the memory that nothing reads after it
};

}  // namespace artel
