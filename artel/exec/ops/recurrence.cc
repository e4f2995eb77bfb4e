#include "artel/exec/kernels/recurrence.h"

#include "artel/exec/ops/catalogue.h"

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
          request.threads};
}

std::function<Kernel(const KernelRequest&)> forward_of(Cell cell) {
  return [cell](const KernelRequest& request) -> Kernel {
    const Recurrence recurrence = recurrence_of(request, cell, request.in(0));
    const bool bias = request.attributes().flag("bias");
    const int mask = bias ? 3 : 2;
    const bool masked = request.inputs() > mask;
    return {{},
            recurrence.forward_workspace_bytes(),
            [=](const KernelRun& run) {
              recurrence.forward(run.pool,
                                 {.projected = run.in(0),
                                  .weight = run.in(1),
                                  .bias = bias ? run.in(2) : nullptr,
                                  .mask = masked ? run.as_input<const uint32_t>(mask) : nullptr,
                                  .y = run.out(0),
                                  .gates = run.out(1),
                                  .memory = run.out(2)},
                                 run.workspace);
            },
            {{1, 0}}};
  };
}

std::function<Kernel(const KernelRequest&)> backward_of(Cell cell) {
  return [cell](const KernelRequest& request) -> Kernel {
    const Recurrence recurrence = recurrence_of(request, cell, request.in(3));
    const bool masked = request.inputs() > 5, two = request.node.outputs.size() > 1;
    return {{},
            recurrence.backward_workspace_bytes(),
            [=](const KernelRun& run) {
              recurrence.backward(run.pool,
                                  {.dy = run.in(0),
                                   .weight = run.in(1),
                                   .y = run.in(2),
                                   .gates = run.in(3),
                                   .memory = run.in(4),
                                   .mask = masked ? run.as_input<const uint32_t>(5) : nullptr,
                                   .dprojected = run.out(0),
                                   .dhidden = two ? run.out(1) : nullptr},
                                  run.workspace);
            },
            {{0, 3}}};
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
