#include "artel/exec/plan/excerpt.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/exec/plan/memory_plan.h"

namespace artel {
namespace {

class Excerptor {
 public:
  Excerptor(const Graph& graph, Plan whole, const Excerpt& excerpt)
      : graph_(graph), plan_(std::move(whole)) {
    written_.assign(plan_.buffers.size(), false);
    used_.assign(plan_.buffers.size(), false);
    find_slots();
    take_kernels(excerpt);
  }

  Plan run() {
    reset_buffers();
    for (size_t i = 0; i < plan_.kernels.size(); ++i) live_through(static_cast<int>(i));
    for (const PlanPiece& piece : plan_.pieces) {
      // The next piece starts after they have been sent.
      for (const int buffer : piece.departures) extend(buffer, piece.end);
      for (const int buffer : piece.arrivals) plan_.buffers[buffer].first = piece.begin;
    }
    for (const auto& [name, value] : graph_.outputs())
      if (used_[viewed(plan_, plan_.buffer_of[value])]) extend(plan_.buffer_of[value], kForever);
    place_gradients();
    check_complete();
    reuse_inputs(graph_, plan_);
    place_activations(plan_);
    return std::move(plan_);
  }

 private:
  void find_slots() {
    for (const GradientSlot& slot : plan_.gradients)
      slot_buffers_.push_back(buffer_of_slot(plan_, slot));
  }

  void take_kernels(const Excerpt& excerpt) {
    std::vector<PlannedKernel> all = std::exchange(plan_.kernels, {});
    plan_.forward_end = 0;
    for (const ExcerptPiece& piece : excerpt) {
      const int begin = now();
      for (const int kernel : piece.kernels) {
        for (const int output : all[kernel].outputs) written_[output] = true;
        plan_.kernels.push_back(std::move(all[kernel]));
      }
      plan_.pieces.push_back({begin, now(), piece.arrivals, piece.departures});
    }
    while (plan_.forward_end < now() &&
           plan_.kernels[plan_.forward_end].direction == Direction::forward)
      ++plan_.forward_end;
    for (const PlannedKernel& kernel : plan_.kernels) {
      for (const int input : kernel.inputs) used_[viewed(plan_, input)] = true;
      for (const int output : kernel.outputs) used_[output] = true;
      if (kernel.workspace >= 0) used_[kernel.workspace] = true;
    }
    for (const PlanPiece& piece : plan_.pieces)
      for (const int buffer : piece.arrivals) used_[buffer] = true;
  }

  // Initially, only views share memory, with their sources. A gradient received from another part
  // is an activation here.
  void reset_buffers() {
    for (size_t i = 0; i < plan_.buffers.size(); ++i) {
      Buffer& buffer = plan_.buffers[i];
      buffer.root = viewed(plan_, static_cast<int>(i));
      const bool is_input =
          buffer.value >= 0 && graph_.value(buffer.value).kind == ValueKind::input;
      buffer.first = is_input && buffer.view_of < 0 ? 0 : -1;
      buffer.last = -1;
      if (!used_[buffer.root])
        buffer.region = Region::absent;
      else if (buffer.region == Region::gradients)
        buffer.region = Region::activations;
    }
  }

  void extend(int buffer, int last) {
    for (const int id : {buffer, plan_.buffers[buffer].root})
      plan_.buffers[id].last = std::max(plan_.buffers[id].last, last);
  }

  void live_through(int kernel) {
    const PlannedKernel& planned = plan_.kernels[kernel];
    std::vector<int> made = planned.outputs;
    if (planned.workspace >= 0) made.push_back(planned.workspace);
    for (const int buffer : made) {
      plan_.buffers[buffer].first = kernel;
      extend(buffer, kernel);
    }
    for (const int input : planned.inputs) extend(input, kernel);
  }

  void place_gradients() {
    std::vector<GradientSlot> slots;
    size_t offset = 0;
    for (size_t i = 0; i < slot_buffers_.size(); ++i) {
      const int id = slot_buffers_[i];
      if (id < 0 || !written_[id]) continue;
      Buffer& buffer = plan_.buffers[id];
      GradientSlot slot = plan_.gradients[i];
      slot.offset = buffer.offset = offset;
      slot.ready = buffer.last == kForever ? now() : buffer.last;
      buffer.region = Region::gradients;
      buffer.last = kForever;
      offset += aligned(buffer.bytes);
      slots.push_back(slot);
    }
    plan_.gradients = std::move(slots);
    plan_.gradient_bytes = offset;
    for (Buffer& buffer : plan_.buffers) {
      const Buffer& root = plan_.buffers[buffer.root];
      buffer.region = root.region;
      if (root.region == Region::gradients) buffer.offset = root.offset;
    }
  }

  void check_complete() const {
    for (const PlannedKernel& kernel : plan_.kernels)
      for (const int input : kernel.inputs) {
        const Buffer& buffer = plan_.buffers[viewed(plan_, input)];
        const bool leaf = graph_.value(buffer.value).kind != ValueKind::computed;
        require(leaf || buffer.first >= 0, ErrorKind::internal,
                "[excerpt] {} of layer '{}' reads buffer {}, which no part computes or sends",
                kernel.op, kernel.layer, input);
      }
  }

  int now() const { return static_cast<int>(plan_.kernels.size()); }

  const Graph& graph_;
  Plan plan_;
  std::vector<int> slot_buffers_;
  std::vector<bool> written_, used_;  // by buffer: written by a kernel, used by any piece
};

}  // namespace

int viewed(const Plan& plan, int buffer) {
  while (plan.buffers[buffer].view_of >= 0) buffer = plan.buffers[buffer].view_of;
  return buffer;
}

std::vector<int> writers(const Plan& plan) {
  std::vector<int> writer(plan.buffers.size(), -1);
  for (size_t i = 0; i < plan.kernels.size(); ++i)
    for (const int output : plan.kernels[i].outputs) writer[output] = static_cast<int>(i);
  return writer;
}

int buffer_of_slot(const Plan& plan, const GradientSlot& slot) {
  for (size_t i = 0; i < plan.buffers.size(); ++i) {
    const Buffer& buffer = plan.buffers[i];
    if (buffer.region == Region::gradients && buffer.root == static_cast<int>(i) &&
        buffer.offset == slot.offset && buffer.bytes == slot.bytes && buffer.bytes > 0)
      return static_cast<int>(i);
  }
  return -1;
}

Plan excerpt_of(const Graph& graph, Plan whole, const Excerpt& excerpt) {
  return Excerptor(graph, std::move(whole), excerpt).run();
}

}  // namespace artel
