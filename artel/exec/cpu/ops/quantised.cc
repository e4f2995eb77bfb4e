#include "artel/exec/cpu/matmul/quantised_product.h"
#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/cpu/ops/shared.h"

namespace artel {
namespace {

kernels::QuantisedShape quantised_shape(const KernelRequest& request, int64_t rows) {
  const bool eight = request.in_type(1) == DType::i8;
  const int64_t in = request.in(1)[1] * (eight ? 1 : 2);
  return {.rows = rows,
          .out = request.in(1)[0],
          .in = in,
          .bits = eight ? 8 : 4,
          .group = in / request.in(2)[1],
          .offsets = request.attributes().flag("offsets")};
}

kernels::QuantisedMemory quantised_memory(const KernelRun& run, bool offsets) {
  return {run.inputs[1], run.as_input<const uint16_t>(2),
          offsets ? run.as_input<const uint16_t>(3) : nullptr};
}

Kernel make_quantised_dense(const KernelRequest& request) {
  const kernels::QuantisedShape shape = quantised_shape(request, rows_of(request.in(0)).rows);
  const kernels::QuantisedProduct product(shape);
  const int bias = request.attributes().flag("bias") ? request.inputs() - 1 : -1;
  return {{}, product.workspace_bytes(), [=](const KernelRun& run) {
            product.run(run.pool, run.in(0), quantised_memory(run, shape.offsets),
                        bias < 0 ? nullptr : run.in(bias), run.out(0), run.workspace);
          }};
}

Kernel make_quantised_embedding(const KernelRequest& request) {
  const int64_t count = request.in(0).elements();
  const kernels::QuantisedShape shape = quantised_shape(request, count);
  return {{}, 0, [=](const KernelRun& run) {
            kernels::quantised_rows(run.pool, shape, count, run.as_input<const int32_t>(0),
                                    quantised_memory(run, shape.offsets), run.out(0));
          }};
}

}  // namespace

std::vector<KernelDefinition> quantised_kernels() {
  return {{"quantised_dense", make_quantised_dense},
          {"quantised_embedding", make_quantised_embedding}};
}

}  // namespace artel
