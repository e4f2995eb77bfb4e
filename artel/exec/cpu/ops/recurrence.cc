#include "artel/exec/cpu/sequence/recurrence.h"

#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/cpu/ops/shared.h"

namespace artel {
namespace {

using kernels::Cell;
using kernels::Recurrence;

Recurrence recurrence_of(const KernelRequest& request, Cell cell, const Shape& gates) {
  return {{.cell = cell,
           .batch = gates[0],
           .positions = gates[1],
           .units = request.in(1)[1],
           .reverse = request.attributes().flag("reverse")},
          request.threads,
          request.lanes.together};
}

// A kernel that runs one lane or several, whose arguments are arguments_of(lane).
template <typename ArgumentsOf, typename RunAll>
Kernel recurrent_kernel(size_t bytes, int64_t batch, const ArgumentsOf& arguments_of,
                        const RunAll& run_all) {
  Kernel kernel = {{}, bytes, [=](const KernelRun& run) {
                     const auto arguments = arguments_of(run);
                     run_all(run, std::span(&arguments, 1));
                   }};
  kernel.rows = batch;
  kernel.run_lanes = [=](std::span<const KernelRun> lanes) {
    std::vector<decltype(arguments_of(lanes[0]))> all;
    for (const KernelRun& lane : lanes) all.push_back(arguments_of(lane));
    run_all(lanes[0], std::span<const typename decltype(all)::value_type>(all));
  };
  return kernel;
}

std::function<Kernel(const KernelRequest&)> forward_of(Cell cell) {
  return [cell](const KernelRequest& request) -> Kernel {
    const Recurrence recurrence = recurrence_of(request, cell, request.in(0));
    const bool bias = request.attributes().flag("bias");
    const int mask = bias ? 3 : 2;
    const bool masked = request.inputs() > mask;
    Kernel kernel = recurrent_kernel(
        recurrence.forward_workspace_bytes(), request.in(0)[0],
        [=](const KernelRun& run) -> kernels::RecurrenceForward {
          return {.batch = run.rows,
                  .projected = run.in(0),
                  .weight = run.in(1),
                  .bias = bias ? run.in(2) : nullptr,
                  .mask = masked ? run.as_input<const uint32_t>(mask) : nullptr,
                  .y = run.out(0),
                  .gates = run.out(1),
                  .memory = run.out(2)};
        },
        [=](const KernelRun& run, std::span<const kernels::RecurrenceForward> lanes) {
          recurrence.forward(run.pool, lanes, run.workspace);
        });
    kernel.in_place = {{1, 0}};
    if (!share_inputs(request, 1, bias ? 2 : 1)) kernel.run_lanes = {};
    return kernel;
  };
}

std::function<Kernel(const KernelRequest&)> backward_of(Cell cell) {
  return [cell](const KernelRequest& request) -> Kernel {
    const Recurrence recurrence = recurrence_of(request, cell, request.in(3));
    const bool masked = request.inputs() > 5, two = request.node.outputs.size() > 1;
    Kernel kernel = recurrent_kernel(
        recurrence.backward_workspace_bytes(), request.in(3)[0],
        [=](const KernelRun& run) -> kernels::RecurrenceBackward {
          return {.batch = run.rows,
                  .dy = run.in(0),
                  .weight = run.in(1),
                  .y = run.in(2),
                  .gates = run.in(3),
                  .memory = run.in(4),
                  .mask = masked ? run.as_input<const uint32_t>(5) : nullptr,
                  .dprojected = run.out(0),
                  .dhidden = two ? run.out(1) : nullptr};
        },
        [=](const KernelRun& run, std::span<const kernels::RecurrenceBackward> lanes) {
          recurrence.backward(run.pool, lanes, run.workspace);
        });
    kernel.in_place = {{0, 3}};
    if (!share_inputs(request, 1, 1)) kernel.run_lanes = {};
    return kernel;
  };
}

}  // namespace

std::vector<KernelDefinition> recurrence_kernels() {
  return {{"lstm", forward_of(Cell::lstm)},
          {"lstm_backward", backward_of(Cell::lstm)},
          {"gru", forward_of(Cell::gru)},
          {"gru_backward", backward_of(Cell::gru)}};
}

}  // namespace artel
