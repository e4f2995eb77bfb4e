#include "artel/exec/cpu/ops/shapes.h"
#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

using kernels::PoolAxis;
using kernels::PoolShape;

// Windows are those of exec/cpu/rows/pool_window.h; a kernel size of 0 means adaptive pooling. Each
// work item computes one element of the output, or of the input gradient by gathering from all
// windows that contain it.
constexpr std::string_view kPoolSource = R"(
#define AXES int channels, int h_in, int h_out, int h_kernel, int h_stride, int h_padding, \
             int w_in, int w_out, int w_kernel, int w_stride, int w_padding

int window_begin(int i, int in, int out, int kernel_size, int stride, int padding) {
  return kernel_size == 0 ? (int)((long)i * in / out) : max(i * stride - padding, 0);
}
int window_end(int i, int in, int out, int kernel_size, int stride, int padding) {
  return kernel_size == 0 ? (int)(((long)(i + 1) * in + out - 1) / out)
                          : min(i * stride - padding + kernel_size, in);
}
/* The size with the padding. */
int padded_size(int i, int in, int out, int kernel_size, int stride, int padding) {
  if (kernel_size == 0)
    return window_end(i, in, out, kernel_size, stride, padding) -
           window_begin(i, in, out, kernel_size, stride, padding);
  const int begin = i * stride - padding;
  return min(begin + kernel_size, in + padding) - begin;
}
/* The first window that may contain an element, and the last. */
int first_window(int at, int in, int out, int kernel_size, int stride, int padding) {
  if (kernel_size == 0) return (int)((long)at * out / in);
  const int reach = at + padding - kernel_size + 1;
  return reach <= 0 ? 0 : (reach + stride - 1) / stride;
}
int last_window(int at, int in, int out, int kernel_size, int stride, int padding) {
  if (kernel_size == 0) return min((int)(((long)(at + 1) * out + in - 1) / in) - 1, out - 1);
  return min((at + padding) / stride, out - 1);
}
#define H h_in, h_out, h_kernel, h_stride, h_padding
#define W w_in, w_out, w_kernel, w_stride, w_padding

__kernel void max_pool(int n, AXES, IN(float, x), OUT(float, y), OUT(INDEX, winners)) {
  USE_IN(float, x);
  USE_OUT(float, y);
  USE_OUT(INDEX, winners);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels, column = i / channels % w_out, row = i / channels / w_out % h_out;
  const long image = i / channels / w_out / h_out;
  const int top = window_begin(row, H), bottom = window_end(row, H);
  const int left = window_begin(column, W), right = window_end(column, W);
  float best = 0;
  int winner = 0, position = 0;
  for (int h = top; h < bottom; ++h)
    for (int w = left; w < right; ++w, ++position) {
      const float value = x[((image * h_in + h) * w_in + w) * channels + c];
      if (position == 0 || value > best || isnan(value)) {
        best = value;
        winner = position;
      }
    }
  y[i] = best;
  winners[i] = (INDEX)winner;
}

__kernel void max_pool_backward(int n, AXES, IN(float, dy), IN(INDEX, winners), OUT(float, dx)) {
  USE_IN(float, dy);
  USE_IN(INDEX, winners);
  USE_OUT(float, dx);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels, w = i / channels % w_in, h = i / channels / w_in % h_in;
  const long image = i / channels / w_in / h_in;
  float sum = 0;
  for (int row = first_window(h, H); row <= last_window(h, H); ++row) {
    const int top = window_begin(row, H);
    if (h < top || h >= window_end(row, H)) continue;
    for (int column = first_window(w, W); column <= last_window(w, W); ++column) {
      const int left = window_begin(column, W), right = window_end(column, W);
      if (w < left || w >= right) continue;
      const long at = ((image * h_out + row) * w_out + column) * channels + c;
      if (winners[at] == (h - top) * (right - left) + w - left) sum += dy[at];
    }
  }
  dx[i] = sum;
}

__kernel void average_pool(int n, AXES, int count_padding, IN(float, x), OUT(float, y)) {
  USE_IN(float, x);
  USE_OUT(float, y);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels, column = i / channels % w_out, row = i / channels / w_out % h_out;
  const long image = i / channels / w_out / h_out;
  const int top = window_begin(row, H), bottom = window_end(row, H);
  const int left = window_begin(column, W), right = window_end(column, W);
  float sum = 0;
  for (int h = top; h < bottom; ++h)
    for (int w = left; w < right; ++w) sum += x[((image * h_in + h) * w_in + w) * channels + c];
  const int size = count_padding ? padded_size(row, H) * padded_size(column, W)
                                 : (bottom - top) * (right - left);
  y[i] = sum * (1.0f / size);
}

__kernel void average_pool_backward(int n, AXES, int count_padding, IN(float, dy),
                                    OUT(float, dx)) {
  USE_IN(float, dy);
  USE_OUT(float, dx);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int c = i % channels, w = i / channels % w_in, h = i / channels / w_in % h_in;
  const long image = i / channels / w_in / h_in;
  float sum = 0;
  for (int row = first_window(h, H); row <= last_window(h, H); ++row) {
    const int top = window_begin(row, H), bottom = window_end(row, H);
    if (h < top || h >= bottom) continue;
    for (int column = first_window(w, W); column <= last_window(w, W); ++column) {
      const int left = window_begin(column, W), right = window_end(column, W);
      if (w < left || w >= right) continue;
      const int size = count_padding ? padded_size(row, H) * padded_size(column, W)
                                     : (bottom - top) * (right - left);
      sum += dy[((image * h_out + row) * w_out + column) * channels + c] * (1.0f / size);
    }
  }
  dx[i] = sum;
}
)";

std::vector<Argument> pool_arguments(const PoolShape& s, int64_t n) {
  const PoolAxis &h = s.height, &w = s.width;
  return {n,         s.channels, h.input,  h.output, h.kernel, h.stride,
          h.padding, w.input,    w.output, w.kernel, w.stride, w.padding};
}

BuiltKernel pool_kernel(OpenClDevice& device, const char* name, bool small) {
  return device.kernel(kPoolSource, name, small ? "-DINDEX=uchar" : "-DINDEX=int");
}

Kernel make_max_pool(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const bool small = request.graph.type(request.node.outputs[1]).dtype == DType::u8;
  const BuiltKernel kernel = pool_kernel(device, "max_pool", small);
  const PoolShape shape = pool_shape(request.attributes(), request.in(0));
  return {{}, 0, [=, &device](const KernelRun& run) {
            std::vector<Argument> arguments = pool_arguments(shape, shape.output_elements());
            arguments.insert(arguments.end(), {run.in(0), run.out(0), run.outputs[1]});
            device.run(kernel, items(shape.output_elements()), arguments);
          }};
}

Kernel make_max_pool_backward(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const bool small = request.in_type(1) == DType::u8;
  const BuiltKernel kernel = pool_kernel(device, "max_pool_backward", small);
  const PoolShape shape = pool_shape(request.attributes(), request.out());
  return {{}, 0, [=, &device](const KernelRun& run) {
            std::vector<Argument> arguments = pool_arguments(shape, shape.input_elements());
            arguments.insert(arguments.end(), {run.in(0), run.inputs[1], run.out(0)});
            device.run(kernel, items(shape.input_elements()), arguments);
          }};
}

Kernel average(const KernelRequest& request, const PoolShape& shape, const char* name, int64_t n) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel kernel = pool_kernel(device, name, false);
  const bool count_padding = request.attributes().flag("count_padding");
  return {{}, 0, [=, &device](const KernelRun& run) {
            std::vector<Argument> arguments = pool_arguments(shape, n);
            arguments.insert(arguments.end(), {count_padding, run.in(0), run.out(0)});
            device.run(kernel, items(n), arguments);
          }};
}

Kernel make_average_pool(const KernelRequest& request) {
  const PoolShape shape = pool_shape(request.attributes(), request.in(0));
  return average(request, shape, "average_pool", shape.output_elements());
}

Kernel make_average_pool_backward(const KernelRequest& request) {
  const PoolShape shape = pool_shape(request.attributes(), request.out());
  return average(request, shape, "average_pool_backward", shape.input_elements());
}

}  // namespace

std::vector<KernelDefinition> pooling_kernels() {
  return {{"max_pool", make_max_pool},
          {"adaptive_max_pool", make_max_pool},
          {"max_pool_backward", make_max_pool_backward},
          {"average_pool", make_average_pool},
          {"adaptive_average_pool", make_average_pool},
          {"average_pool_backward", make_average_pool_backward},
          {"adaptive_average_pool_backward", make_average_pool_backward}};
}

}  // namespace artel::opencl
