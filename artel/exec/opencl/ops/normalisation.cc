#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/copies.h"
#include "artel/exec/opencl/ops/shared.h"
#include "artel/exec/opencl/ops/sums.h"

namespace artel::opencl {
namespace {

// Batch norm on a matrix [rows, channels].
constexpr std::string_view kBatchNormSource = R"(
__kernel void inverse_deviation(int channels, float epsilon, float unbiased, IN(float, gamma),
                                OUT(float, variance), OUT(float, inv_std), OUT(float, scale)) {
  USE_IN(float, gamma);
  USE_OUT(float, variance);
  USE_OUT(float, inv_std);
  USE_OUT(float, scale);
  const int c = get_global_id(0);
  if (c >= channels) return;
  const float inverse = 1.0f / sqrt(variance[c] + epsilon);
  if (inv_std) {
    inv_std[c] = inverse;
    variance[c] *= unbiased;
  }
  scale[c] = gamma[c] * inverse;
}

__kernel void normalise(int n, int channels, int relu, IN(float, x), IN(float, mean),
                        IN(float, scale), IN(float, beta), IN(float, residual), OUT(float, y)) {
  USE_IN(float, x);
  USE_IN(float, mean);
  USE_IN(float, scale);
  USE_IN(float, beta);
  USE_IN(float, residual);
  USE_OUT(float, y);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels;
  float value = fma(x[i] - mean[c], scale[c], beta[c]);
  if (residual) value += residual[i];
  y[i] = relu && value < 0 ? 0.0f : value;
}

/* dy where the ReLU let something through; `y`, if given, is its output, else it is computed again. */
__kernel void masked_gradient(int n, int channels, IN(float, dy), IN(float, x), IN(float, y),
                              IN(float, gamma), IN(float, beta), IN(float, mean),
                              IN(float, inv_std), OUT(float, dz)) {
  USE_IN(float, dy);
  USE_IN(float, x);
  USE_IN(float, y);
  USE_IN(float, gamma);
  USE_IN(float, beta);
  USE_IN(float, mean);
  USE_IN(float, inv_std);
  USE_OUT(float, dz);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels;
  const float value = y ? y[i] : fma(x[i] - mean[c], gamma[c] * inv_std[c], beta[c]);
  dz[i] = value > 0 ? dy[i] : 0.0f;
}

/* dgamma still lacks the factor inv_std, which is multiplied afterwards. */
__kernel void batch_norm_dx(int n, int channels, int rows, IN(float, dz), IN(float, x),
                            IN(float, gamma), IN(float, mean), IN(float, inv_std),
                            IN(float, dgamma), IN(float, dbeta), OUT(float, dx)) {
  USE_IN(float, dz);
  USE_IN(float, x);
  USE_IN(float, gamma);
  USE_IN(float, mean);
  USE_IN(float, inv_std);
  USE_IN(float, dgamma);
  USE_IN(float, dbeta);
  USE_OUT(float, dx);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels;
  const float inverse = inv_std[c];
  const float along = (x[i] - mean[c]) * inverse * inverse * (dgamma[c] / rows);
  dx[i] = gamma[c] * inverse * (dz[i] - dbeta[c] / rows - along);
}

__kernel void multiply_by(int n, IN(float, factor), OUT(float, x)) {
  USE_IN(float, factor);
  USE_OUT(float, x);
  if (get_global_id(0) < n) x[get_global_id(0)] *= factor[get_global_id(0)];
}
)";

size_t vector_bytes(int64_t channels) {
  return static_cast<size_t>((channels + 15) / 16 * 16) * sizeof(float);
}

Kernel make_batch_norm(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const ColumnSummer summer(device);
  const BuiltKernel inverse = device.kernel(kBatchNormSource, "inverse_deviation");
  const BuiltKernel normalise = device.kernel(kBatchNormSource, "normalise");
  const Rows shape = channel_rows(request.in(0));
  const auto epsilon = static_cast<float>(request.attributes().number("epsilon"));
  const bool relu = request.attributes().flag("relu"), residual = request.inputs() == 4;
  const float unbiased =
      shape.rows > 1 ? static_cast<float>(shape.rows) / static_cast<float>(shape.rows - 1) : 1.0f;
  const int64_t n = request.in(0).elements();
  const size_t scale_bytes = vector_bytes(shape.columns);
  Kernel kernel = {
      {},
      scale_bytes + ColumnSummer::workspace_bytes(shape.rows, shape.columns),
      [=, &device](const KernelRun& run) {
        const float share = 1.0f / static_cast<float>(shape.rows);
        std::byte* const scale = run.workspace;
        std::byte* const partials = run.workspace + scale_bytes;
        summer.run({.rows = shape.rows, .columns = shape.columns, .x = run.in(0)}, share,
                   run.out(1), partials);
        summer.run({.rows = shape.rows,
                    .columns = shape.columns,
                    .term = Term::square,
                    .x = run.in(0),
                    .mean = run.out(1)},
                   share, run.out(3), partials);
        device.run(inverse, items(shape.columns),
                   {shape.columns, epsilon, unbiased, run.in(1), run.out(3), run.out(2), scale});
        device.run(normalise, items(n),
                   {n, shape.columns, relu, run.in(0), run.out(1), scale, run.in(2),
                    residual ? run.in(3) : nullptr, run.out(0)});
      }};
  if (residual) kernel.in_place = {{0, 3}};
  return kernel;
}

Kernel make_batch_norm_inference(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel inverse = device.kernel(kBatchNormSource, "inverse_deviation");
  const BuiltKernel normalise = device.kernel(kBatchNormSource, "normalise");
  const Rows shape = channel_rows(request.in(0));
  const auto epsilon = static_cast<float>(request.attributes().number("epsilon"));
  const bool relu = request.attributes().flag("relu");
  const int64_t n = request.in(0).elements();
  return {{},
          vector_bytes(shape.columns),
          [=, &device](const KernelRun& run) {
            device.run(
                inverse, items(shape.columns),
                {shape.columns, epsilon, 1.0f, run.in(1), run.in(4), nullptr, run.workspace});
            device.run(normalise, items(n),
                       {n, shape.columns, relu, run.in(0), run.in(3), run.workspace, run.in(2),
                        nullptr, run.out(0)});
          },
          {{0, 0}}};
}

Kernel make_batch_norm_backward(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const ColumnSummer summer(device);
  const BuiltKernel mask = device.kernel(kBatchNormSource, "masked_gradient");
  const BuiltKernel dx = device.kernel(kBatchNormSource, "batch_norm_dx");
  const BuiltKernel multiply = device.kernel(kBatchNormSource, "multiply_by");
  const StridedCopy copy(device, {request.in(0).elements()}, {1}, {1});
  const Rows shape = channel_rows(request.in(0));
  const bool relu = request.attributes().flag("relu");
  const bool residual = request.attributes().flag("residual");
  const int64_t n = request.in(0).elements();
  const size_t masked_bytes = relu && !residual ? static_cast<size_t>(n) * sizeof(float) : 0;
  Kernel kernel = {
      {},
      masked_bytes + ColumnSummer::workspace_bytes(shape.rows, shape.columns),
      [=, &device](const KernelRun& run) {
        std::byte* const partials = run.workspace + masked_bytes;
        const float* dz = run.in(0);
        if (relu) {
          float* const masked = residual ? run.out(3) : reinterpret_cast<float*>(run.workspace);
          device.run(mask, items(n),
                     {n, shape.columns, run.in(0), run.in(1), residual ? run.in(6) : nullptr,
                      run.in(2), run.in(3), run.in(4), run.in(5), masked});
          dz = masked;
        } else if (residual) {
          copy.run(run.in(0), run.out(3));
        }
        summer.run({.rows = shape.rows, .columns = shape.columns, .x = dz}, 1, run.out(2),
                   partials);
        summer.run({.rows = shape.rows,
                    .columns = shape.columns,
                    .term = Term::product,
                    .x = dz,
                    .y = run.in(1),
                    .mean = run.in(4)},
                   1, run.out(1), partials);
        device.run(dx, items(n),
                   {n, shape.columns, shape.rows, dz, run.in(1), run.in(2), run.in(4), run.in(5),
                    run.out(1), run.out(2), run.out(0)});
        device.run(multiply, items(shape.columns), {shape.columns, run.in(5), run.out(1)});
      }};
  kernel.in_place = {{residual ? 3 : 0, 0}};
  return kernel;
}

// One work group per row. Without `mean`, it computes an RMS norm.
constexpr std::string_view kRowNormSource = R"(
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void row_norm(int columns, float epsilon, IN(float, x), IN(float, gamma), IN(float, beta),
              OUT(float, y), OUT(float, mean), OUT(float, inv_std)) {
  __local float scratch[64];
  USE_IN(float, x);
  USE_IN(float, gamma);
  USE_IN(float, beta);
  USE_OUT(float, y);
  USE_OUT(float, mean);
  USE_OUT(float, inv_std);
  const int row = get_group_id(0), l = get_local_id(0);
  x += (long)row * columns;
  y += (long)row * columns;
  float center = 0;
  if (mean) {
    for (int i = l; i < columns; i += 64) center += x[i];
    center = group_sum(scratch, center) / columns;
  }
  float squares = 0;
  for (int i = l; i < columns; i += 64) squares += (x[i] - center) * (x[i] - center);
  const float inverse = 1.0f / sqrt(group_sum(scratch, squares) / columns + epsilon);
  for (int i = l; i < columns; i += 64)
    y[i] = (x[i] - center) * inverse * gamma[i] + (beta ? beta[i] : 0.0f);
  if (l == 0) {
    if (mean) mean[row] = center;
    inv_std[row] = inverse;
  }
}

__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void row_norm_dx(int columns, IN(float, dy), IN(float, x), IN(float, gamma), IN(float, mean),
                 IN(float, inv_std), OUT(float, dx)) {
  __local float scratch[64];
  USE_IN(float, dy);
  USE_IN(float, x);
  USE_IN(float, gamma);
  USE_IN(float, mean);
  USE_IN(float, inv_std);
  USE_OUT(float, dx);
  const int row = get_group_id(0), l = get_local_id(0);
  dy += (long)row * columns;
  x += (long)row * columns;
  dx += (long)row * columns;
  const float center = mean ? mean[row] : 0.0f, inverse = inv_std[row];
  float along = 0, average = 0;
  for (int i = l; i < columns; i += 64) {
    const float scaled = dy[i] * gamma[i];
    along += scaled * (x[i] - center) * inverse;
    average += scaled;
  }
  along = group_sum(scratch, along) / columns;
  average = mean ? group_sum(scratch, average) / columns : 0.0f;
  for (int i = l; i < columns; i += 64)
    dx[i] = (dy[i] * gamma[i] - average - (x[i] - center) * inverse * along) * inverse;
}
)";

Kernel make_row_norm(const KernelRequest& request, bool rms) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel kernel = device.kernel(kRowNormSource, "row_norm");
  const Rows shape = rows_of(request.in(0));
  const auto epsilon = static_cast<float>(request.attributes().number("epsilon"));
  return {{}, 0, [=, &device](const KernelRun& run) {
            device.run(kernel, groups(shape.rows),
                       {shape.columns, epsilon, run.in(0), run.in(1), rms ? nullptr : run.in(2),
                        run.out(0), rms ? nullptr : run.out(1), run.out(rms ? 1 : 2)});
          }};
}

// Computes the sums over rows first, because dx may overwrite dy.
Kernel make_row_norm_backward(const KernelRequest& request, bool rms) {
  OpenClDevice& device = device_of(request);
  const ColumnSummer summer(device);
  const BuiltKernel kernel = device.kernel(kRowNormSource, "row_norm_dx");
  const Rows shape = rows_of(request.in(0));
  Kernel result = {
      {},
      ColumnSummer::workspace_bytes(shape.rows, shape.columns),
      [=, &device](const KernelRun& run) {
        const float* const mean = rms ? nullptr : run.in(3);
        const float* const inv_std = run.in(rms ? 3 : 4);
        summer.run({.rows = shape.rows,
                    .columns = shape.columns,
                    .term = Term::normalised,
                    .x = run.in(0),
                    .y = run.in(1),
                    .mean = mean,
                    .scale = inv_std},
                   1, run.out(1), run.workspace);
        if (!rms)
          summer.run({.rows = shape.rows, .columns = shape.columns, .x = run.in(0)}, 1, run.out(2),
                     run.workspace);
        device.run(kernel, groups(shape.rows),
                   {shape.columns, run.in(0), run.in(1), run.in(2), mean, inv_std, run.out(0)});
      }};
  if (!rms) result.in_place = {{0, 0}};
  return result;
}

std::function<Kernel(const KernelRequest&)> row_norm_maker(Kernel (*make)(const KernelRequest&,
                                                                          bool),
                                                           bool rms) {
  return [=](const KernelRequest& request) { return make(request, rms); };
}

}  // namespace

std::vector<KernelDefinition> normalisation_kernels() {
  return {{"batch_norm", make_batch_norm},
          {"batch_norm_backward", make_batch_norm_backward},
          {"batch_norm_inference", make_batch_norm_inference},
          {"layer_norm", row_norm_maker(make_row_norm, false)},
          {"layer_norm_backward", row_norm_maker(make_row_norm_backward, false)},
          {"rms_norm", row_norm_maker(make_row_norm, true)},
          {"rms_norm_backward", row_norm_maker(make_row_norm_backward, true)}};
}

}  // namespace artel::opencl
