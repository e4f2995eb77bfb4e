// A debugging check of plans and kernels: a kernel may read only written memory and write only its
// own outputs.
//
// Memory is filled with a marked NaN before it is written and after its last use. Arithmetic
// preserves the payload of a NaN, so a kernel that leaves part of its output unwritten, or reads
// unwritten memory, shows the mark in its output. All other memory, including parameters and
// constants, must be unchanged by a kernel. Gaps between buffers are marked, too, to detect reads
// beyond an input. Checks only the processor's memory.
#pragma once

#include <span>
#include <vector>

#include "artel/exec/plan/plan.h"

namespace artel {

class MemoryMarks {
 public:
  // `pointers` is the memory of each buffer, `regions` all memory that a kernel could spoil. All
  // are borrowed.
  MemoryMarks(const Graph& graph, const Plan& plan, const std::vector<std::byte*>& pointers,
              std::vector<std::span<std::byte>> regions);

  // Call after the inputs are set and before the first kernel. Marks the rest of this region.
  void begin(std::span<std::byte> activations);
  void before(int kernel);
  // Throws an internal error that names the kernel, its layer and the element.
  void after(int kernel);
  // Marks the memory that no later kernel reads, including unused outputs of this kernel.
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
