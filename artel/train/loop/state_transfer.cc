#include "artel/train/loop/state_transfer.h"

#include <algorithm>
#include <utility>

#include "artel/train/parts/divided_state.h"

namespace artel {

void share_state(TrainerState& state, Workload& workload, comm::Group& group, int root) {
  group.broadcast(std::as_writable_bytes(state.parameters.block()), root, {.label = "parameters"});
  workload.share_optimizer(group, root);
}

void hand_out_state(TrainerState& state, comm::Group& group, DividedStateTransfer& divided) {
  PendingTensors remembered(std::exchange(state.pending_optimizer, {}));
  int32_t pending = state.first_values.pending() ? 1 : 0;
  group.all_reduce(std::as_writable_bytes(std::span(&pending, 1)), comm::ElementType::i32,
                   comm::ReductionKind::min, {.label = "first values"});
  const bool first = group.rank() == 0;
  if (first && pending == 0) state.fill();
  state.in_parts = false;
  for (const ParameterEntry& entry : state.parameters.entries()) {
    if (divided.divides(entry.name)) continue;
    const std::span<float> values = state.parameters.values(entry);
    if (first && pending == 1) state.first_values.set(entry, state.parameters);
    group.broadcast(std::as_writable_bytes(values), 0, {.label = "parameters"});
  }
  const auto is_zero = [](std::span<const float> values) {
    return std::all_of(values.begin(), values.end(), [](float x) { return x == 0; });
  };
  divided.hand_out(
      [&](const DividedStateTransfer::Part& part) -> std::span<const float> {
        if (part.is_weight && pending == 0) return part.values;
        if (part.is_weight)
          return state.first_values.take_loaded(part.name, part.shape, part.layout);
        const std::span<const float> saved = remembered.take(part.name, part.shape, part.layout);
        if (!saved.empty() || is_zero(part.values)) return saved;
        return part.values;
      },
      [&](const DividedStateTransfer::Part& part) {
        if (part.is_weight)
          return state.first_values.make(state.parameters.entry(part.name), state.parameters);
        for (const DividedStateTransfer::Range& range : part.kept)
          if (const auto values = part.values.subspan(range.first, range.count); !is_zero(values))
            std::fill(values.begin(), values.end(), 0.0F);
      });
  state.first_values.drop();
}

}  // namespace artel
