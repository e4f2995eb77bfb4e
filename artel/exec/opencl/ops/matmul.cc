#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/products.h"
#include "artel/exec/opencl/ops/shared.h"
#include "artel/exec/opencl/ops/sums.h"

namespace artel::opencl {
namespace {

Activation activation_of(const Attributes& attributes) {
  if (attributes.flag("relu")) return Activation::relu;
  if (attributes.flag("gelu")) return Activation::gelu;
  return attributes.flag("gelu_tanh") ? Activation::gelu_tanh : Activation::none;
}

Kernel make_dense(const KernelRequest& request) {
  const Products products(device_of(request));
  const Rows x = rows_of(request.in(0));
  const bool in_out = request.attributes().flag("in_out");
  const int64_t out = request.out().back(), in = x.columns;
  const Product shape = {.m = x.rows,
                         .n = out,
                         .k = in,
                         .lda = in,
                         .ldb = in_out ? out : in,
                         .transpose_b = !in_out,
                         .ldc = out,
                         .activation = activation_of(request.attributes())};
  const bool bias = request.inputs() == 3, slope = request.attributes().flag("slope");
  return {{}, 0, [=](const KernelRun& run) {
            Product product = shape;
            product.a = run.in(0);
            product.b = run.in(1);
            product.c = run.out(0);
            if (bias) product.bias = run.in(2);
            if (slope) product.slope = run.out(1);
            products.run(product);
          }};
}

Kernel make_matmul(const KernelRequest& request) {
  const Products products(device_of(request));
  const bool ta = request.attributes().flag("transpose_a");
  const bool tb = request.attributes().flag("transpose_b");
  const Shape &a = request.in(0), &b = request.in(1), &c = request.out();
  Product shape = {.m = c[c.rank() - 2],
                   .n = c.back(),
                   .k = ta ? a[a.rank() - 2] : a.back(),
                   .lda = a.back(),
                   .transpose_a = ta,
                   .ldb = b.back(),
                   .transpose_b = tb,
                   .ldc = c.back()};
  if (b.rank() == 2) {
    shape.m = rows_of(c).rows;
  } else {
    const auto matrix = [](const Shape& s) { return s[s.rank() - 2] * s.back(); };
    for (int axis = 0; axis < c.rank() - 2; ++axis) shape.batch *= c[axis];
    shape.a_distance = matrix(a);
    shape.b_distance = matrix(b);
    shape.c_distance = matrix(c);
  }
  return {{}, 0, [=](const KernelRun& run) {
            Product product = shape;
            product.a = run.in(0);
            product.b = run.in(1);
            product.c = run.out(0);
            products.run(product);
          }};
}

Rows channels_of(const KernelRequest& request) {
  return request.attributes().flag("channels_first") ? channel_rows(request.in(0))
                                                     : rows_of(request.in(0));
}

constexpr std::string_view kBiasSource = R"(
__kernel void through_slope(int n, int by_slope, IN(float, dy), IN(float, y), OUT(float, dz)) {
  USE_IN(float, dy);
  USE_IN(float, y);
  USE_OUT(float, dz);
  const int i = get_global_id(0);
  if (i >= n) return;
  dz[i] = by_slope ? dy[i] * y[i] : y[i] > 0 ? dy[i] : 0.0f;
}
)";

Kernel make_bias_backward(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel mask = device.kernel(kBiasSource, "through_slope");
  const ColumnSummer summer(device);
  const Rows all = channels_of(request);
  const int64_t n = request.in(0).elements();
  const bool slope = request.attributes().flag("slope");
  return {{},
          ColumnSummer::workspace_bytes(all.rows, all.columns),
          [=, &device](const KernelRun& run) {
            device.run(mask, items(n), {n, slope, run.in(0), run.in(1), run.out(0)});
            summer.run({.rows = all.rows, .columns = all.columns, .x = run.out(0)}, 1, run.out(1),
                       run.workspace);
          },
          {{0, 0}}};
}

Kernel make_column_sum(const KernelRequest& request) {
  const ColumnSummer summer(device_of(request));
  const Rows all = channels_of(request);
  return {{}, ColumnSummer::workspace_bytes(all.rows, all.columns), [=](const KernelRun& run) {
            summer.run({.rows = all.rows, .columns = all.columns, .x = run.in(0)}, 1, run.out(0),
                       run.workspace);
          }};
}

}  // namespace

std::vector<KernelDefinition> matmul_kernels() {
  return {{"dense", make_dense},
          {"matmul", make_matmul},
          {"bias_backward", make_bias_backward},
          {"column_sum", make_column_sum}};
}

}  // namespace artel::opencl
