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
      ending_(plan.steps.size()) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    const bool ends = buffer.last >= 0 && buffer.last < static_cast<int>(plan.steps.size());
    if (buffer.root == static_cast<int>(i) && buffer.region == Region::activations && ends)
      ending_[static_cast<size_t>(buffer.last)].push_back(static_cast<int>(i));
  }
}

std::span<std::byte> MemoryMarks::memory_of(int buffer) const {
  return {pointers_[buffer], plan_.buffers[buffer].bytes};
}

std::string MemoryMarks::describe(int number) const {
  const PlannedStep& step = plan_.steps[number];
  return fmt::format("{}{} of layer '{}' (kernel {} of {})", step.op,
                     step.kernel.algorithm.empty() ? "" : " by " + step.kernel.algorithm,
                     step.layer, number, plan_.steps.size());
}

void MemoryMarks::before(int number) {
  const PlannedStep& step = plan_.steps[number];
  const auto is_input = [&](int buffer) {
    return std::any_of(step.inputs.begin(), step.inputs.end(),
                       [&](int input) { return pointers_[input] == pointers_[buffer]; });
  };
  for (const int output : step.outputs)
    if (!is_input(output)) mark(memory_of(output));
  if (step.workspace >= 0) mark(memory_of(step.workspace));
  copies_.clear();
  for (const std::span<std::byte> region : regions_)
    copies_.emplace_back(region.begin(), region.end());
}

void MemoryMarks::after(int number) {
  check_written(number);
  check_untouched(number);
  for (const int buffer : ending_[static_cast<size_t>(number)]) mark(memory_of(buffer));
}

void MemoryMarks::check_written(int number) const {
  for (const int output : plan_.steps[number].outputs) {
    const TensorType& type = graph_.type(plan_.buffers[output].value);
    if (type.dtype != DType::f32) continue;
    const std::span values(reinterpret_cast<const uint32_t*>(pointers_[output]),
                           plan_.buffers[output].bytes / sizeof(uint32_t));
    const auto marked = std::find_if(values.begin(), values.end(), [](uint32_t bits) {
      return (bits & 0x7fffffff) == kMark;  // arithmetic may change the sign
    });
    require(
        marked == values.end(), ErrorKind::internal,
        "[memory] {}: element {} of {} was not written, or was made of memory that nobody wrote",
        describe(number), marked - values.begin(), to_string(type.shape));
  }
}

void MemoryMarks::check_untouched(int number) {
  const PlannedStep& step = plan_.steps[number];
  std::vector<int> own = step.outputs;
  if (step.workspace >= 0) own.push_back(step.workspace);
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
            "[memory] {} wrote outside of its outputs and workspace", describe(number));
  }
}

}  // namespace artel
