// Kernels that move, convert or sum elements, whatever the layout of their input.
#include <algorithm>
#include <cstring>

#include "artel/exec/cpu/elementwise/copy.h"
#include "artel/exec/cpu/ops/catalogue.h"
#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/cpu/rows/reduce.h"

namespace artel {
namespace {

using kernels::CopyKernel;

LayoutChoice any_input(const Graph&, const Node& node, const std::vector<Layout>& offered) {
  return {offered, std::vector<Layout>(node.outputs.size())};
}

// Images stay channels-last if that is how the first input comes.
LayoutChoice image_layouts(const Graph& graph, const Node& node,
                           const std::vector<Layout>& offered) {
  return {offered, {graph.type(node.outputs[0]).shape.rank() == 4 ? offered[0] : Layout{}}};
}

Kernel copy_kernel(const Shape& shape, const std::vector<int64_t>& from,
                   const std::vector<int64_t>& to) {
  auto copy = std::make_shared<CopyKernel>(shape.extents(), from, to);
  return {{}, 0, [=](const KernelRun& run) { copy->run(run.pool, run.in(0), run.out(0)); }};
}

Kernel make_transpose(const KernelRequest& request) {
  const std::vector<int64_t> from = strides_of(request.in(0), request.input_layouts[0]);
  std::vector<int64_t> permuted;
  for (const int64_t axis : request.attributes().integers("permutation"))
    permuted.push_back(from[static_cast<size_t>(axis)]);
  return copy_kernel(request.out(), permuted, row_major_strides(request.out()));
}

int64_t axis_of(const KernelRequest& request, int rank) {
  const int64_t axis = request.attributes().integer("axis");
  return axis < 0 ? axis + rank : axis;
}

Kernel make_slice(const KernelRequest& request) {
  const std::vector<int64_t> from = strides_of(request.in(0), request.input_layouts[0]);
  const int64_t axis = axis_of(request, request.in(0).rank());
  const int64_t offset = request.attributes().integer("begin") * from[static_cast<size_t>(axis)];
  auto copy = std::make_shared<CopyKernel>(request.out().extents(), from,
                                           strides_of(request.out(), request.output_layouts[0]));
  return {
      {}, 0, [=](const KernelRun& run) { copy->run(run.pool, run.in(0) + offset, run.out(0)); }};
}

Kernel make_slice_backward(const KernelRequest& request) {
  const std::vector<int64_t> to = strides_of(request.out(), request.output_layouts[0]);
  const int64_t axis = axis_of(request, request.out().rank());
  const int64_t offset = request.attributes().integer("begin") * to[static_cast<size_t>(axis)];
  const auto bytes = static_cast<size_t>(request.out().elements()) * sizeof(float);
  auto copy = std::make_shared<CopyKernel>(request.in(0).extents(),
                                           strides_of(request.in(0), request.input_layouts[0]), to);
  return {{}, 0, [=](const KernelRun& run) {
            std::memset(run.outputs[0], 0, bytes);
            copy->run(run.pool, run.in(0), run.out(0) + offset);
          }};
}

Kernel make_concat(const KernelRequest& request) {
  const std::vector<int64_t> to = strides_of(request.out(), request.output_layouts[0]);
  const auto axis = static_cast<size_t>(axis_of(request, request.out().rank()));
  struct Part {
    CopyKernel copy;
    int64_t offset;
  };
  auto parts = std::make_shared<std::vector<Part>>();
  int64_t begin = 0;
  for (int i = 0; i < request.inputs(); ++i) {
    const Shape& shape = request.in(i);
    parts->push_back({CopyKernel(shape.extents(), strides_of(shape, request.input_layouts[i]), to),
                      begin * to[axis]});
    begin += shape[static_cast<int>(axis)];
  }
  return {{}, 0, [=](const KernelRun& run) {
            for (size_t i = 0; i < parts->size(); ++i)
              (*parts)[i].copy.run(run.pool, run.in(static_cast<int>(i)),
                                   run.out(0) + (*parts)[i].offset);
          }};
}

Kernel make_broadcast(const KernelRequest& request) {
  const Shape &x = request.in(0), &y = request.out();
  const std::vector<int64_t> from = strides_of(x, request.input_layouts[0]);
  const int extra = y.rank() - x.rank();
  std::vector<int64_t> strides(static_cast<size_t>(y.rank()), 0);
  for (int axis = extra; axis < y.rank(); ++axis)
    if (x[axis - extra] > 1)
      strides[static_cast<size_t>(axis)] = from[static_cast<size_t>(axis - extra)];
  return copy_kernel(y, strides, row_major_strides(y));
}

Kernel make_to_f32(const KernelRequest& request) {
  const int64_t count = request.in(0).elements();
  return {{}, 0, [=](const KernelRun& run) {
            std::copy_n(run.as_input<const int32_t>(0), count, run.out(0));
          }};
}

std::function<Kernel(const KernelRequest&)> reduce(kernels::ReduceOp op) {
  return [op](const KernelRequest& request) -> Kernel {
    const Shape& x = request.in(0);
    std::vector<bool> reduced(static_cast<size_t>(x.rank()), false);
    for (const int64_t axis : request.attributes().integers("axes"))
      reduced[static_cast<size_t>(axis < 0 ? axis + x.rank() : axis)] = true;
    auto kernel = std::make_shared<kernels::ReduceKernel>(
        op, x.extents(), strides_of(x, request.input_layouts[0]), reduced);
    return {{}, static_cast<size_t>(kernel->workspace_bytes()), [=](const KernelRun& run) {
              kernel->run(run.pool, run.in(0), run.out(0), run.workspace);
            }};
  };
}

}  // namespace

std::vector<KernelDefinition> shape_kernels() {
  using kernels::ReduceOp;
  return {{"transpose", make_transpose, any_input},
          {"slice", make_slice, image_layouts},
          {"slice_backward", make_slice_backward, image_layouts},
          {"concat", make_concat, image_layouts},
          {"broadcast_to", make_broadcast, any_input},
          {"to_f32", make_to_f32},
          {"reduce_sum", reduce(ReduceOp::sum), any_input},
          {"reduce_mean", reduce(ReduceOp::mean), any_input},
          {"reduce_max", reduce(ReduceOp::max), any_input},
          {"reduce_min", reduce(ReduceOp::min), any_input}};
}

}  // namespace artel
