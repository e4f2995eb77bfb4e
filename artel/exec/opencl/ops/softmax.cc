#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

// One work group per row.
constexpr std::string_view kSoftmaxSource = R"(
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void softmax(int columns, int logarithm, IN(float, x), OUT(float, y)) {
  __local float scratch[64];
  USE_IN(float, x);
  USE_OUT(float, y);
  x += (long)get_group_id(0) * columns;
  y += (long)get_group_id(0) * columns;
  float largest = -INFINITY;
  for (int i = get_local_id(0); i < columns; i += 64) largest = larger_of(largest, x[i]);
  largest = group_max(scratch, largest);
  float sum = 0;
  for (int i = get_local_id(0); i < columns; i += 64) sum += exp(x[i] - largest);
  sum = group_sum(scratch, sum);
  const float rest = log(sum);
  for (int i = get_local_id(0); i < columns; i += 64)
    y[i] = logarithm ? x[i] - largest - rest : exp(x[i] - largest) / sum;
}

/* softmax: y (dy - sum(y dy)); its logarithm: dy - exp(y) sum(dy). */
__kernel __attribute__((reqd_work_group_size(64, 1, 1)))
void softmax_backward(int columns, int logarithm, IN(float, dy), IN(float, y), OUT(float, dx)) {
  __local float scratch[64];
  USE_IN(float, dy);
  USE_IN(float, y);
  USE_OUT(float, dx);
  const long first = (long)get_group_id(0) * columns;
  dy += first;
  y += first;
  dx += first;
  float sum = 0;
  for (int i = get_local_id(0); i < columns; i += 64) sum += logarithm ? dy[i] : dy[i] * y[i];
  sum = group_sum(scratch, sum);
  for (int i = get_local_id(0); i < columns; i += 64)
    dx[i] = logarithm ? dy[i] - exp(y[i]) * sum : y[i] * (dy[i] - sum);
}
)";

std::function<Kernel(const KernelRequest&)> softmax_forward(bool logarithm) {
  return [=](const KernelRequest& request) -> Kernel {
    OpenClDevice& device = device_of(request);
    const BuiltKernel kernel = device.kernel(kSoftmaxSource, "softmax");
    const Rows all = rows_of(request.in(0));
    return {{},
            0,
            [=, &device](const KernelRun& run) {
              device.run(kernel, groups(all.rows), {all.columns, logarithm, run.in(0), run.out(0)});
            },
            {{0, 0}}};
  };
}

std::function<Kernel(const KernelRequest&)> softmax_gradient(bool logarithm) {
  return [=](const KernelRequest& request) -> Kernel {
    OpenClDevice& device = device_of(request);
    const BuiltKernel kernel = device.kernel(kSoftmaxSource, "softmax_backward");
    const Rows all = rows_of(request.in(0));
    return {{},
            0,
            [=, &device](const KernelRun& run) {
              device.run(kernel, groups(all.rows),
                         {all.columns, logarithm, run.in(0), run.in(1), run.out(0)});
            },
            {{0, 0}}};
  };
}

}  // namespace

std::vector<KernelDefinition> softmax_kernels() {
  return {{"softmax", softmax_forward(false)},
          {"softmax_backward", softmax_gradient(false)},
          {"log_softmax", softmax_forward(true)},
          {"log_softmax_backward", softmax_gradient(true)}};
}

}  // namespace artel::opencl
