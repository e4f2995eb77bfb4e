#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/cpu/rows/norm.h"

namespace artel {
namespace {

kernels::BatchNormOptions options_of(const Attributes& attributes) {
  return {.epsilon = static_cast<float>(attributes.number("epsilon")),
          .relu = attributes.flag("relu")};
}

size_t workspace_for(const Rows& shape) {
  return static_cast<size_t>(kernels::norm_workspace_bytes(shape.rows, shape.columns));
}

// Running statistics follow the unbiased variance, as PyTorch's do.
Kernel make_batch_norm(const KernelRequest& request) {
  const Rows shape = channel_rows(request.in(0));
  const kernels::BatchNormOptions options = options_of(request.attributes());
  const bool residual = request.inputs() == 4;
  const float unbiased =
      shape.rows > 1 ? static_cast<float>(shape.rows) / static_cast<float>(shape.rows - 1) : 1.0f;
  return {{},
          workspace_for(shape),
          [=](const KernelRun& run) {
            kernels::batch_norm_training(run.pool, options, shape.rows, shape.columns, run.in(0),
                                         run.in(1), run.in(2), residual ? run.in(3) : nullptr,
                                         run.out(0), run.out(1), run.out(2), run.out(3),
                                         run.workspace);
            for (int64_t c = 0; c < shape.columns; ++c) run.out(3)[c] *= unbiased;
          },
          residual ? std::vector<std::pair<int, int>>{{0, 3}} : std::vector<std::pair<int, int>>{}};
}

Kernel make_batch_norm_backward(const KernelRequest& request) {
  const Rows shape = channel_rows(request.in(0));
  const kernels::BatchNormOptions options = options_of(request.attributes());
  const bool residual = request.attributes().flag("residual");
  Kernel kernel = {{}, workspace_for(shape), [=](const KernelRun& run) {
                     kernels::batch_norm_backward(
                         run.pool, options, shape.rows, shape.columns, run.in(0), run.in(1),
                         residual && options.relu ? run.in(6) : nullptr, run.in(2), run.in(3),
                         run.in(4), run.in(5), run.out(0), run.out(1), run.out(2),
                         residual ? run.out(3) : nullptr, run.workspace);
                   }};
  kernel.in_place = residual ? std::vector<std::pair<int, int>>{{3, 0}}
                             : std::vector<std::pair<int, int>>{{0, 0}};
  return kernel;
}

Kernel make_batch_norm_inference(const KernelRequest& request) {
  const Rows shape = channel_rows(request.in(0));
  const kernels::BatchNormOptions options = options_of(request.attributes());
  return {{},
          workspace_for(shape),
          [=](const KernelRun& run) {
            kernels::batch_norm_inference(run.pool, options, shape.rows, shape.columns, run.in(0),
                                          run.in(1), run.in(2), nullptr, run.in(3), run.in(4),
                                          run.out(0), run.workspace);
          },
          {{0, 0}}};
}

Kernel make_layer_norm(const KernelRequest& request) {
  const Rows shape = rows_of(request.in(0));
  const auto epsilon = static_cast<float>(request.attributes().number("epsilon"));
  return {{}, 0, [=](const KernelRun& run) {
            kernels::layer_norm(run.pool, epsilon, shape.rows, shape.columns, run.in(0), run.in(1),
                                run.in(2), run.out(0), run.out(1), run.out(2));
          }};
}

Kernel make_layer_norm_backward(const KernelRequest& request) {
  const Rows shape = rows_of(request.in(0));
  return {{},
          workspace_for(shape),
          [=](const KernelRun& run) {
            kernels::layer_norm_backward(run.pool, shape.rows, shape.columns, run.in(0), run.in(1),
                                         run.in(2), run.in(3), run.in(4), run.out(0), run.out(1),
                                         run.out(2), run.workspace);
          },
          {{0, 0}}};
}

Kernel make_rms_norm(const KernelRequest& request) {
  const Rows shape = rows_of(request.in(0));
  const auto epsilon = static_cast<float>(request.attributes().number("epsilon"));
  return {{}, 0, [=](const KernelRun& run) {
            kernels::rms_norm(run.pool, epsilon, shape.rows, shape.columns, run.in(0), run.in(1),
                              run.out(0), run.out(1));
          }};
}

Kernel make_rms_norm_backward(const KernelRequest& request) {
  const Rows shape = rows_of(request.in(0));
  return {{}, workspace_for(shape), [=](const KernelRun& run) {
            kernels::rms_norm_backward(run.pool, shape.rows, shape.columns, run.in(0), run.in(1),
                                       run.in(2), run.in(3), run.out(0), run.out(1), run.workspace);
          }};
}

}  // namespace

std::vector<KernelDefinition> normalisation_kernels() {
  return {{"batch_norm", make_batch_norm, images_channels_last},
          {"batch_norm_backward", make_batch_norm_backward, images_channels_last},
          {"batch_norm_inference", make_batch_norm_inference, images_channels_last},
          {"layer_norm", make_layer_norm},
          {"layer_norm_backward", make_layer_norm_backward},
          {"rms_norm", make_rms_norm},
          {"rms_norm_backward", make_rms_norm_backward}};
}

}  // namespace artel
