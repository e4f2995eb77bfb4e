#include "artel/exec/memory_plan.h"

#include <algorithm>
#include <map>

#include "artel/base/error.h"

namespace artel {
namespace {

bool alive_together(const Buffer& a, const Buffer& b) {
  return a.first <= std::max(b.last, b.first) && b.first <= std::max(a.last, a.first);
}

// What each stretch of a region holds while the plan is replayed.
class Contents {
 public:
  void write(size_t begin, size_t bytes, int content) {
    if (bytes == 0) return;
    cut(begin);
    cut(begin + bytes);
    stretches_.erase(stretches_.lower_bound(begin), stretches_.lower_bound(begin + bytes));
    stretches_[begin] = {begin + bytes, content};
  }

  bool holds(size_t begin, size_t bytes, int content) const {
    size_t at = begin;
    while (at < begin + bytes) {
      auto stretch = stretches_.upper_bound(at);
      if (stretch == stretches_.begin()) return false;
      --stretch;
      if (stretch->second.end <= at || stretch->second.content != content) return false;
      at = stretch->second.end;
    }
    return true;
  }

 private:
  struct Stretch {
    size_t end;
    int content;
  };

  void cut(size_t at) {
    auto stretch = stretches_.upper_bound(at);
    if (stretch == stretches_.begin()) return;
    --stretch;
    if (stretch->first == at || stretch->second.end <= at) return;
    const Stretch tail = stretch->second;
    stretch->second.end = at;
    stretches_[at] = tail;
  }

  std::map<size_t, Stretch> stretches_;
};

}  // namespace

void place_activations(Plan& plan) {
  std::vector<int> roots;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.region == Region::activations && buffer.root == static_cast<int>(i))
      roots.push_back(static_cast<int>(i));
  }
  std::stable_sort(roots.begin(), roots.end(),
                   [&](int a, int b) { return plan.buffers[a].bytes > plan.buffers[b].bytes; });
  std::vector<int> placed;
  plan.activation_bytes = 0;
  for (const int id : roots) {
    Buffer& buffer = plan.buffers[id];
    std::vector<std::pair<size_t, size_t>> taken;
    for (const int other : placed)
      if (alive_together(buffer, plan.buffers[other]))
        taken.emplace_back(plan.buffers[other].offset,
                           plan.buffers[other].offset + aligned(plan.buffers[other].bytes));
    std::sort(taken.begin(), taken.end());
    size_t offset = 0;
    for (const auto& [begin, end] : taken) {
      if (offset + aligned(buffer.bytes) <= begin) break;
      offset = std::max(offset, end);
    }
    buffer.offset = offset;
    plan.activation_bytes = std::max(plan.activation_bytes, offset + aligned(buffer.bytes));
    placed.push_back(id);
  }
  for (Buffer& buffer : plan.buffers) {
    if (plan.buffers[buffer.root].region != Region::activations) continue;
    buffer.region = Region::activations;
    buffer.offset = plan.buffers[buffer.root].offset;
  }
}

void check_plan(const Graph& graph, const Plan& plan) {
  // Replays the steps and follows what every byte holds. A view holds what its source holds.
  std::vector<int> content(plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const int source = plan.buffers[i].view_of;
    content[i] = source >= 0 ? content[source] : static_cast<int>(i);
  }
  std::map<Region, Contents> memory;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& b = plan.buffers[i];
    if (b.value >= 0 && b.region == Region::activations &&
        graph.value(b.value).kind == ValueKind::input && b.root == static_cast<int>(i))
      memory[b.region].write(b.offset, b.bytes, content[i]);
  }
  const auto tracked = [](const Buffer& b) {
    return b.region == Region::activations || b.region == Region::gradients;
  };
  const auto expect = [&](int id, const std::string& where) {
    const Buffer& b = plan.buffers[id];
    if (!tracked(b)) return;
    require(memory[b.region].holds(b.offset, b.bytes, content[id]), ErrorKind::internal,
            "[plan] {}: buffer {} at {} was overwritten or never written", where, id, b.offset);
  };
  for (size_t s = 0; s < plan.steps.size(); ++s) {
    const PlannedStep& step = plan.steps[s];
    const std::string where = fmt::format("step {} ({}, layer '{}')", s, step.op, step.layer);
    for (const int input : step.inputs) expect(input, where);
    std::vector<int> written = step.outputs;
    if (step.workspace >= 0) written.push_back(step.workspace);
    for (const int output : written) {
      const Buffer& b = plan.buffers[output];
      memory[b.region].write(b.offset, b.bytes, content[output]);
    }
    for (const int output : written) expect(output, where);  // no two outputs overlap
  }
  for (const auto& [name, value] : graph.outputs())
    if (graph.value(value).kind == ValueKind::computed)
      expect(plan.buffer_of[value], fmt::format("output '{}'", name));
  for (const GradientSlot& slot : plan.gradients)
    for (size_t i = 0; i < plan.buffers.size(); ++i)
      if (plan.buffers[i].region == Region::gradients && plan.buffers[i].offset == slot.offset &&
          plan.buffers[i].root == static_cast<int>(i) && plan.buffers[i].bytes > 0)
        expect(static_cast<int>(i), "end");
}

}  // namespace artel
