#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/cpu/ops/shapes.h"
#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/cpu/rows/pool.h"

namespace artel {
namespace {

using kernels::PoolShape;

Kernel make_max(const KernelRequest& request) {
  const PoolShape shape = pool_shape(request.attributes(), request.in(0));
  const bool small = request.graph.type(request.node.outputs[1]).dtype == DType::u8;
  return {{}, 0, [=](const KernelRun& run) {
            if (small)
              kernels::max_pool(run.pool, shape, run.in(0), run.out(0), run.as_output<uint8_t>(1));
            else
              kernels::max_pool(run.pool, shape, run.in(0), run.out(0), run.as_output<int32_t>(1));
          }};
}

Kernel make_max_backward(const KernelRequest& request) {
  const PoolShape shape = pool_shape(request.attributes(), request.out());
  const bool small = request.in_type(1) == DType::u8;
  return {{}, 0, [=](const KernelRun& run) {
            if (small)
              kernels::max_pool_backward(run.pool, shape, run.in(0), run.as_input<const uint8_t>(1),
                                         run.out(0));
            else
              kernels::max_pool_backward(run.pool, shape, run.in(0), run.as_input<const int32_t>(1),
                                         run.out(0));
          }};
}

Kernel make_average(const KernelRequest& request) {
  const PoolShape shape = pool_shape(request.attributes(), request.in(0));
  const bool count_padding = request.attributes().flag("count_padding");
  return {{}, 0, [=](const KernelRun& run) {
            kernels::average_pool(run.pool, shape, count_padding, run.in(0), run.out(0));
          }};
}

Kernel make_average_backward(const KernelRequest& request) {
  const PoolShape shape = pool_shape(request.attributes(), request.out());
  const bool count_padding = request.attributes().flag("count_padding");
  return {{}, 0, [=](const KernelRun& run) {
            kernels::average_pool_backward(run.pool, shape, count_padding, run.in(0), run.out(0));
          }};
}

}  // namespace

std::vector<KernelDefinition> pooling_kernels() {
  return {{"max_pool", make_max, images_channels_last},
          {"adaptive_max_pool", make_max, images_channels_last},
          {"max_pool_backward", make_max_backward, images_channels_last},
          {"average_pool", make_average, images_channels_last},
          {"adaptive_average_pool", make_average, images_channels_last},
          {"average_pool_backward", make_average_backward, images_channels_last},
          {"adaptive_average_pool_backward", make_average_backward, images_channels_last}};
}

}  // namespace artel
