// Ops that move or convert elements, for inputs of any layout.
#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/copies.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

Kernel copy_kernel(const KernelRequest& request, const Shape& shape,
                   const std::vector<int64_t>& from, const std::vector<int64_t>& to) {
  const StridedCopy copy(device_of(request), shape.extents(), from, to);
  return {{}, 0, [=](const KernelRun& run) { copy.run(run.in(0), run.out(0)); }};
}

Kernel make_transpose(const KernelRequest& request) {
  const std::vector<int64_t> from = strides_of(request.in(0), request.input_layouts[0]);
  std::vector<int64_t> permuted;
  for (const int64_t axis : request.attributes().integers("permutation"))
    permuted.push_back(from[static_cast<size_t>(axis)]);
  return copy_kernel(request, request.out(), permuted, row_major_strides(request.out()));
}

Kernel make_broadcast(const KernelRequest& request) {
  const Shape &x = request.in(0), &y = request.out();
  const std::vector<int64_t> from = strides_of(x, request.input_layouts[0]);
  const int extra = y.rank() - x.rank();
  std::vector<int64_t> strides(static_cast<size_t>(y.rank()), 0);
  for (int axis = extra; axis < y.rank(); ++axis)
    if (x[axis - extra] > 1)
      strides[static_cast<size_t>(axis)] = from[static_cast<size_t>(axis - extra)];
  return copy_kernel(request, y, strides, row_major_strides(y));
}

int64_t axis_of(const KernelRequest& request, int rank) {
  const int64_t axis = request.attributes().integer("axis");
  return axis < 0 ? axis + rank : axis;
}

Kernel make_slice(const KernelRequest& request) {
  const std::vector<int64_t> from = strides_of(request.in(0), request.input_layouts[0]);
  const int64_t axis = axis_of(request, request.in(0).rank());
  const int64_t offset = request.attributes().integer("begin") * from[static_cast<size_t>(axis)];
  const StridedCopy copy(device_of(request), request.out().extents(), from,
                         strides_of(request.out(), request.output_layouts[0]));
  return {{}, 0, [=](const KernelRun& run) { copy.run(run.in(0) + offset, run.out(0)); }};
}

Kernel make_slice_backward(const KernelRequest& request) {
  const std::vector<int64_t> to = strides_of(request.out(), request.output_layouts[0]);
  const int64_t axis = axis_of(request, request.out().rank());
  const int64_t offset = request.attributes().integer("begin") * to[static_cast<size_t>(axis)];
  const int64_t n = request.out().elements();
  const Fill fill(device_of(request));
  const StridedCopy copy(device_of(request), request.in(0).extents(),
                         strides_of(request.in(0), request.input_layouts[0]), to);
  return {{}, 0, [=](const KernelRun& run) {
            fill.run(run.out(0), n);
            copy.run(run.in(0), run.out(0) + offset);
          }};
}

Kernel make_concat(const KernelRequest& request) {
  const std::vector<int64_t> to = strides_of(request.out(), request.output_layouts[0]);
  const auto axis = static_cast<size_t>(axis_of(request, request.out().rank()));
  struct Part {
    StridedCopy copy;
    int64_t offset;
  };
  std::vector<Part> parts;
  int64_t begin = 0;
  for (int i = 0; i < request.inputs(); ++i) {
    const Shape& shape = request.in(i);
    parts.push_back(
        {StridedCopy(device_of(request), shape.extents(),
                     strides_of(shape, request.input_layouts[static_cast<size_t>(i)]), to),
         begin * to[axis]});
    begin += shape[static_cast<int>(axis)];
  }
  return {{}, 0, [=](const KernelRun& run) {
            for (size_t i = 0; i < parts.size(); ++i)
              parts[i].copy.run(run.in(static_cast<int>(i)), run.out(0) + parts[i].offset);
          }};
}

constexpr std::string_view kConversionSource = R"(
__kernel void to_f32(int n, IN(int, x), OUT(float, y)) {
  USE_IN(int, x);
  USE_OUT(float, y);
  const int i = get_global_id(0);
  if (i < n) y[i] = x[i];
}
)";

Kernel make_to_f32(const KernelRequest& request) {
  OpenClDevice& device = device_of(request);
  const BuiltKernel kernel = device.kernel(kConversionSource, "to_f32");
  const int64_t n = request.in(0).elements();
  return {{}, 0, [=, &device](const KernelRun& run) {
            device.run(kernel, items(n), {n, run.in(0), run.out(0)});
          }};
}

}  // namespace

std::vector<KernelDefinition> shape_kernels() {
  return {{"transpose", make_transpose},           {"slice", make_slice},
          {"slice_backward", make_slice_backward}, {"concat", make_concat},
          {"broadcast_to", make_broadcast},        {"to_f32", make_to_f32}};
}

}  // namespace artel::opencl
