#include "artel/exec/cpu/ops/shared.h"

#include <algorithm>

#include "artel/base/random.h"
#include "artel/base/time.h"
#include "artel/exec/libraries.h"

namespace artel {

LayoutChoice images_channels_last(const Graph& graph, const Node& node,
                                  const std::vector<Layout>&) {
  const auto choose = [&](ValueId id) {
    const bool image = graph.type(id).shape.rank() == 4;
    return image ? Layout::channels_last() : Layout::row_major();
  };
  LayoutChoice choice;
  for (const ValueId id : node.inputs) choice.inputs.push_back(choose(id));
  for (const ValueId id : node.outputs) choice.outputs.push_back(choose(id));
  return choice;
}

Rows rows_of(const Shape& shape) {
  if (shape.rank() == 0) return {1, 1};
  const int64_t columns = shape.back();
  return {columns ? shape.elements() / columns : 0, columns};
}

Rows channel_rows(const Shape& shape) {
  const int64_t channels = shape[1];
  return {channels ? shape.elements() / channels : 0, channels};
}

uint64_t random_key(const StepContext& context, uint64_t stream) {
  return mix_key({context.seed, static_cast<uint64_t>(context.step),
                  static_cast<uint64_t>(context.lane), stream});
}

namespace {

// True if a value is computed from parameters and constants alone, without random numbers.
bool same_for_all_lanes(const Graph& graph, ValueId id) {
  const ValueData& value = graph.value(id);
  if (value.kind != ValueKind::computed) return value.kind != ValueKind::input;
  const Node& node = graph.node(value.producer);
  return !node.attributes.has("stream") && std::ranges::all_of(node.inputs, [&](ValueId input) {
    return same_for_all_lanes(graph, input);
  });
}

}  // namespace

bool share_inputs(const KernelRequest& request, int first, int last) {
  bool all = request.lanes.together > 1;
  for (int i = first; i <= last; ++i)
    all = all && same_for_all_lanes(request.graph, request.node.inputs[static_cast<size_t>(i)]);
  return all;
}

void join_lanes(const KernelRequest& request, Kernel& kernel,
                std::function<void(std::span<const KernelRun>)> run_lanes) {
  if (share_inputs(request, 1, request.inputs() - 1)) kernel.run_lanes = std::move(run_lanes);
}

double measure(const KernelRequest& request, const Kernel& kernel) {
  ThreadPool pool(request.threads, limit_library_threads);
  std::vector<Tensor> memory;
  const auto place = [&](const TensorType& type) {
    memory.emplace_back(type.shape, type.dtype);
    return memory.back().raw();
  };
  std::vector<std::byte*> inputs, outputs;
  for (const ValueId id : request.node.inputs) inputs.push_back(place(request.graph.type(id)));
  for (const ValueId id : request.node.outputs) outputs.push_back(place(request.graph.type(id)));
  Tensor workspace({static_cast<int64_t>(kernel.workspace_bytes)}, DType::u8);
  const StepContext context;
  double best = 1e30;
  for (int repeat = 0; repeat < 4; ++repeat) {
    const Clock::time_point begin = Clock::now();
    kernel.run({pool, inputs, outputs, workspace.raw(), context, kernel.rows});
    best = std::min(best, seconds_between(begin, Clock::now()));
  }
  return best;
}

}  // namespace artel
