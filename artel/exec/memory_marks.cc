#include "artel/exec/memory_marks.h"

#include <algorithm>
#include <cstring>

#include "artel/base/error.h"

namespace artel {
namespace {

constexpr uint32_t kMark = 0x7fe5a11e;  // a quiet NaN

void mark(std::span<std::byte> memory) {
  for (size_t at = 0; at < memory.size(); at += sizeof kMark)
    std::memcpy(&memory[at], &kMark, std::min(sizeof kMark, memory.size() - at));
}

}  // namespace

MemoryMarks::MemoryMarks(const Graph& graph, const Plan& plan,
                         const std::vector<std::byte*>& pointers,
                         std::vector<std::span<std::byte>> regions)
    : graph_(graph),
      plan_(plan),
      pointers_(pointers),
      regions_(std::move(regions)),
      ending_(plan.kernels.size()) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    const bool ends = buffer.last >= 0 && buffer.last < static_cast<int>(plan.kernels.size());
    if (buffer.root == static_cast<int>(i) && buffer.region == Region::activations && ends)
      ending_[static_cast<size_t>(buffer.last)].push_back(static_cast<int>(i));
  }
}

std::span<std::byte> MemoryMarks::memory_of(int buffer) const {
  if (plan_.buffers[buffer].device != &cpu()) return {};
  return {pointers_[buffer], plan_.buffers[buffer].bytes};
}

std::string MemoryMarks::describe(int kernel) const {
  const PlannedKernel& planned = plan_.kernels[kernel];
  return fmt::format("{}{} of layer '{}' (kernel {} of {})", planned.op,
                     planned.kernel.algorithm.empty() ? "" : " by " + planned.kernel.algorithm,
                     planned.layer, kernel, plan_.kernels.size());
}

void MemoryMarks::begin(std::span<std::byte> activations) {
  std::vector<int> set;
  for (const ValueId id : graph_.of_kind(ValueKind::input))
    if (const int buffer = plan_.buffer_of[id];
        buffer >= 0 && plan_.buffers[buffer].region != Region::absent)
      set.push_back(buffer);
  for (const PlanPiece& piece : plan_.pieces)
    if (piece.begin == 0) set.insert(set.end(), piece.arrivals.begin(), piece.arrivals.end());
  std::vector<std::pair<std::span<std::byte>, std::vector<std::byte>>> inputs;
  for (const int buffer : set) {
    const std::span<std::byte> memory = memory_of(buffer);
    inputs.emplace_back(memory, std::vector<std::byte>(memory.begin(), memory.end()));
  }
  mark(activations);
  for (const auto& [memory, copy] : inputs) std::copy(copy.begin(), copy.end(), memory.begin());
}

void MemoryMarks::before(int kernel) {
  const PlannedKernel& planned = plan_.kernels[kernel];
  const auto is_input = [&](int buffer) {
    return std::any_of(planned.inputs.begin(), planned.inputs.end(),
                       [&](int input) { return pointers_[input] == pointers_[buffer]; });
  };
  for (const int output : planned.outputs)
    if (!is_input(output)) mark(memory_of(output));
  if (planned.workspace >= 0) mark(memory_of(planned.workspace));
  copies_.clear();
  for (const std::span<std::byte> region : regions_)
    copies_.emplace_back(region.begin(), region.end());
}

void MemoryMarks::after(int kernel) {
  check_written(kernel);
  check_untouched(kernel);
}

void MemoryMarks::release(int kernel) {
  for (const int buffer : ending_[static_cast<size_t>(kernel)]) mark(memory_of(buffer));
}

void MemoryMarks::check_written(int kernel) const {
  for (const int output : plan_.kernels[kernel].outputs) {
    const TensorType& type = graph_.type(plan_.buffers[output].value);
    const std::span<std::byte> memory = memory_of(output);
    const std::span values(reinterpret_cast<const uint32_t*>(memory.data()),
                           memory.size() / sizeof(uint32_t));
    const auto marked = std::find_if(values.begin(), values.end(), [](uint32_t bits) {
      return (bits & 0x7fffffff) == kMark;  // arithmetic may change the sign
    });
    require(marked == values.end(), ErrorKind::internal,
            "[memory] {}: element {} of {} was not written, or depends on memory that was never "
            "written",
            describe(kernel), marked - values.begin(), to_string(type.shape));
  }
}

void MemoryMarks::check_untouched(int kernel) {
  const PlannedKernel& planned = plan_.kernels[kernel];
  std::vector<int> own = planned.outputs;
  if (planned.workspace >= 0) own.push_back(planned.workspace);
  for (size_t r = 0; r < regions_.size(); ++r) {
    const std::span<std::byte> region = regions_[r];
    std::vector<std::byte>& copy = copies_[r];
    for (const int buffer : own) {
      const std::span<std::byte> memory = memory_of(buffer);
      if (memory.data() >= region.data() && memory.data() < region.data() + region.size())
        std::copy(memory.begin(), memory.end(), copy.begin() + (memory.data() - region.data()));
    }
    const auto spoilt = std::mismatch(region.begin(), region.end(), copy.begin()).first;
    require(spoilt == region.end(), ErrorKind::internal,
            "[memory] {} wrote outside of its outputs and workspace", describe(kernel));
  }
}

}  // namespace artel
