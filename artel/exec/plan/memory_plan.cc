#include "artel/exec/plan/memory_plan.h"

#include <algorithm>
#include <map>
#include <set>

#include "artel/base/error.h"
#include "artel/exec/occupied_memory.h"

namespace artel {
namespace {

// The content of each range of a region while the plan is replayed.
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

// A kernel's request to write an output in place of an input.
struct Wish {
  int output, input, kernel;
};

class InPlace {
 public:
  InPlace(const Graph& graph, Plan& plan)
      : graph_(graph), plan_(plan), sharers_(plan.buffers.size()) {
    for (size_t i = 0; i < plan.kernels.size(); ++i)
      for (const auto& [out, in] : plan.kernels[i].kernel.in_place)
        wishes_.push_back(
            {plan.kernels[i].outputs[out], plan.kernels[i].inputs[in], static_cast<int>(i)});
    for (const Wish& wish : wishes_) wishes_of_[wish.output].push_back(wish);
    for (size_t i = 0; i < plan.buffers.size(); ++i)
      sharers_[plan.buffers[i].root].push_back(static_cast<int>(i));
    for (const PlanPiece& piece : plan.pieces)
      arrivals_.insert(piece.arrivals.begin(), piece.arrivals.end());
  }

  void grant() {
    std::set<int> taken;  // gradients whose place holds an input
    for (const Wish& wish : wishes_) {
      if (!fits(wish)) continue;
      const int input = plan_.buffers[wish.input].root;
      if (plan_.buffers[wish.output].region == Region::activations)
        merge(wish.output, input);
      else if (lives_longest(wish) && taken.insert(wish.output).second)
        move_to_gradient(input, wish.output);
    }
  }

 private:
  bool fits(const Wish& wish) const {
    const Buffer& output = plan_.buffers[wish.output];
    const int place = plan_.buffers[wish.input].root;
    const Buffer& root = plan_.buffers[place];
    // A value that is received from another part, or computed before the backward pass, may be
    // written while the gradient region is in use elsewhere.
    const bool after_all =
        plan_.pieces.empty() || (!arrivals_.contains(place) && root.first >= plan_.forward_end);
    const bool has_room =
        output.region == Region::activations ||
        (output.region == Region::gradients && after_all && root.device == output.device &&
         root.value >= 0 && graph_.value(root.value).kind == ValueKind::computed);
    return has_room && root.region == Region::activations && output.root == wish.output &&
           root.last == wish.kernel && root.bytes == output.bytes;
  }

  bool lives_longest(const Wish& wish) const {
    const auto first = [&](const Wish& of) {
      return plan_.buffers[plan_.buffers[of.input].root].first;
    };
    const std::vector<Wish>& all = wishes_of_.at(wish.output);
    return std::none_of(all.begin(), all.end(), [&](const Wish& other) {
      return fits(other) && first(other) < first(wish);
    });
  }

  // Moves all buffers that share the memory of `root` to the place of a gradient.
  void move_to_gradient(int root, int gradient) {
    for (const int id : sharers_[root]) {
      plan_.buffers[id].region = Region::gradients;
      plan_.buffers[id].offset = plan_.buffers[gradient].offset;
    }
    share(root, gradient);
  }

  // Makes all buffers that share the memory of `from` share that of `into`.
  void merge(int from, int into) {
    plan_.buffers[into].last = std::max(plan_.buffers[into].last, plan_.buffers[from].last);
    share(from, into);
  }

  void share(int from, int into) {
    for (const int id : sharers_[from]) {
      plan_.buffers[id].root = into;
      sharers_[into].push_back(id);
    }
    sharers_[from].clear();
  }

  const Graph& graph_;
  Plan& plan_;
  std::vector<Wish> wishes_;
  std::map<int, std::vector<Wish>> wishes_of_;  // by output
  std::vector<std::vector<int>> sharers_;       // by root
  std::set<int> arrivals_;                      // buffers received from other parts
};

Placement place(const Plan& plan, bool workspaces) {
  std::vector<int> roots;
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.region == Region::activations && buffer.root == static_cast<int>(i) &&
        (workspaces || buffer.value >= 0))
      roots.push_back(static_cast<int>(i));
  }
  std::stable_sort(roots.begin(), roots.end(),
                   [&](int a, int b) { return plan.buffers[a].bytes > plan.buffers[b].bytes; });
  const auto time = [&](int kernel) {
    return std::min(kernel, static_cast<int>(plan.kernels.size())) + 1;
  };
  std::map<Device*, OccupiedMemory> occupied;
  Placement placement = {std::vector<size_t>(plan.buffers.size()), {{&cpu(), 0}}};
  for (const int id : roots) {
    const Buffer& buffer = plan.buffers[id];
    OccupiedMemory& memory = occupied.try_emplace(buffer.device, time(kForever) + 1).first->second;
    const int first = time(buffer.first), last = time(std::max(buffer.first, buffer.last));
    const size_t offset = memory.lowest_free(first, last, aligned(buffer.bytes));
    const size_t end = offset + aligned(buffer.bytes);
    memory.take(first, last, offset, end);
    placement.offsets[id] = offset;
    size_t& bytes = placement.bytes[buffer.device];
    bytes = std::max(bytes, end);
  }
  for (size_t i = 0; i < plan.buffers.size(); ++i)
    placement.offsets[i] = placement.offsets[plan.buffers[i].root];
  return placement;
}

}  // namespace

size_t Placement::all() const {
  size_t sum = 0;
  for (const auto& [device, count] : bytes) sum += count;
  return sum;
}

void reuse_inputs(const Graph& graph, Plan& plan) { InPlace(graph, plan).grant(); }

void place_activations(Plan& plan) {
  const Placement placement = place(plan, true);
  plan.activations = placement.bytes;
  plan.activation_bytes = placement.all();
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    Buffer& buffer = plan.buffers[i];
    if (plan.buffers[buffer.root].region != Region::activations) continue;
    buffer.region = Region::activations;
    buffer.offset = placement.offsets[i];
  }
}

Placement place_without_workspaces(const Plan& plan) { return place(plan, false); }

void check_plan(const Graph& graph, const Plan& plan) {
  // Replays the kernels and tracks the content of every byte. A view has the content of its source.
  std::vector<int> content(plan.buffers.size());
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const int source = plan.buffers[i].view_of;
    content[i] = source >= 0 ? content[source] : static_cast<int>(i);
  }
  std::map<std::pair<Device*, Region>, Contents> regions;
  const auto memory = [&](const Buffer& b) -> Contents& { return regions[{b.device, b.region}]; };
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& b = plan.buffers[i];
    if (b.value >= 0 && b.region == Region::activations &&
        graph.value(b.value).kind == ValueKind::input && b.root == static_cast<int>(i))
      memory(b).write(b.offset, b.bytes, content[i]);
  }
  const auto tracked = [](const Buffer& b) {
    return b.region == Region::activations || b.region == Region::gradients;
  };
  const auto expect = [&](int id, const std::string& where) {
    const Buffer& b = plan.buffers[id];
    if (!tracked(b)) return;
    require(memory(b).holds(b.offset, b.bytes, content[id]), ErrorKind::internal,
            "[program plan] {}: buffer {} at {} was overwritten or never written", where, id,
            b.offset);
  };
  const auto arrive = [&](int kernel) {
    for (const PlanPiece& piece : plan.pieces)
      for (const int id : piece.arrivals)
        if (piece.begin == kernel) {
          const Buffer& b = plan.buffers[id];
          memory(b).write(b.offset, b.bytes, content[id]);
        }
  };
  const auto depart = [&](int kernel) {
    for (const PlanPiece& piece : plan.pieces)
      for (const int id : piece.departures)
        if (piece.end == kernel) expect(id, fmt::format("departure after kernel {}", kernel - 1));
  };
  for (size_t s = 0; s < plan.kernels.size(); ++s) {
    depart(static_cast<int>(s));
    arrive(static_cast<int>(s));
    const PlannedKernel& kernel = plan.kernels[s];
    const std::string where = fmt::format("kernel {} ({}, layer '{}')", s, kernel.op, kernel.layer);
    for (const int input : kernel.inputs) expect(input, where);
    std::vector<int> written = kernel.outputs;
    if (kernel.workspace >= 0) written.push_back(kernel.workspace);
    for (const int output : written) {
      const Buffer& b = plan.buffers[output];
      memory(b).write(b.offset, b.bytes, content[output]);
    }
    for (const int output : written) expect(output, where);  // no two outputs overlap
  }
  depart(static_cast<int>(plan.kernels.size()));
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
