#include "artel/exec/cpu/rows/reduce.h"

#include <algorithm>

#include "artel/base/error.h"
#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

using kernels::ReduceOp;

constexpr size_t kReduceAxes = 4;
constexpr int64_t kTermsOfChunk = 256, kMostTermChunks = 256;

// Each work item reduces a chunk of the terms of an output in order. Then the chunks are reduced in
// order. NaN propagates.
constexpr std::string_view kReduceSource = R"(
float fold(int op, float a, float b) {
  return op <= 1 ? a + b : op == 2 ? larger_of(a, b) : smaller_of(a, b);
}
float nothing(int op) { return op <= 1 ? 0.0f : op == 2 ? -INFINITY : INFINITY; }

__kernel void fold_terms(int op, int outputs, int terms, int chunks, IN(float, x),
                         OUT(float, partials),
                         int k0, int k1, int k2, int k3, int ks0, int ks1, int ks2, int ks3,
                         int r0, int r1, int r2, int r3, int rs0, int rs1, int rs2, int rs3) {
  USE_IN(float, x);
  USE_OUT(float, partials);
  const int i = get_global_id(0);
  if (i >= outputs * chunks) return;
  int output = i % outputs;
  const int chunk = i / outputs;
  const int begin = (long)terms * chunk / chunks, end = (long)terms * (chunk + 1) / chunks;
  const int o3 = output % k3; output /= k3;
  const int o2 = output % k2; output /= k2;
  const int o1 = output % k1; output /= k1;
  x += output * ks0 + o1 * ks1 + o2 * ks2 + o3 * ks3;
  float result = nothing(op);
  for (int term = begin; term < end; ++term) {
    int rest = term;
    const int t3 = rest % r3; rest /= r3;
    const int t2 = rest % r2; rest /= r2;
    const int t1 = rest % r1; rest /= r1;
    result = fold(op, result, x[rest * rs0 + t1 * rs1 + t2 * rs2 + t3 * rs3]);
  }
  partials[i] = result;
}

__kernel void fold_chunks(int op, int outputs, int terms, int chunks, IN(float, partials),
                          OUT(float, y)) {
  USE_IN(float, partials);
  USE_OUT(float, y);
  const int output = get_global_id(0);
  if (output >= outputs) return;
  float result = nothing(op);
  for (int chunk = 0; chunk < chunks; ++chunk)
    result = fold(op, result, partials[(long)chunk * outputs + output]);
  y[output] = op == 1 ? result / terms : result;
}
)";

struct FoldAxis {
  int64_t extent, stride;
};

void append_axis(std::vector<FoldAxis>& axes, FoldAxis axis) {
  if (axis.extent == 1) return;
  if (!axes.empty() && axes.back().stride == axis.stride * axis.extent)
    axes.back() = {axes.back().extent * axis.extent, axis.stride};
  else
    axes.push_back(axis);
}

// The extents, then the strides.
void append_numbers(std::vector<FoldAxis> axes, std::vector<Argument>& numbers) {
  require(axes.size() <= kReduceAxes, ErrorKind::unsupported,
          "[opencl] a reduction has {} axes that cannot be merged, expected at most {}",
          axes.size(), kReduceAxes);
  axes.insert(axes.begin(), kReduceAxes - axes.size(), FoldAxis{1, 0});
  for (const FoldAxis& axis : axes) numbers.emplace_back(std::max<int64_t>(1, axis.extent));
  for (const FoldAxis& axis : axes) numbers.emplace_back(axis.stride);
}

std::function<Kernel(const KernelRequest&)> reduction(ReduceOp op) {
  return [op](const KernelRequest& request) -> Kernel {
    OpenClDevice& device = device_of(request);
    const Shape& x = request.in(0);
    const std::vector<int64_t> strides = strides_of(x, request.input_layouts[0]);
    std::vector<bool> reduced(static_cast<size_t>(x.rank()), false);
    for (const int64_t axis : request.attributes().integers("axes"))
      reduced[static_cast<size_t>(axis < 0 ? axis + x.rank() : axis)] = true;
    std::vector<FoldAxis> kept, folded;
    int64_t outputs = 1, terms = 1;
    for (size_t axis = 0; axis < reduced.size(); ++axis) {
      const int64_t extent = x[static_cast<int>(axis)];
      append_axis(reduced[axis] ? folded : kept, {extent, strides[axis]});
      (reduced[axis] ? terms : outputs) *= extent;
    }
    std::vector<Argument> numbers;
    append_numbers(kept, numbers);
    append_numbers(folded, numbers);
    const int64_t chunks = std::clamp<int64_t>(divide_up(terms, kTermsOfChunk), 1, kMostTermChunks);
    const BuiltKernel first = device.kernel(kReduceSource, "fold_terms");
    const BuiltKernel second = device.kernel(kReduceSource, "fold_chunks");
    const int code = static_cast<int>(op);
    return {{},
            static_cast<size_t>(outputs * chunks) * sizeof(float),
            [=, &device](const KernelRun& run) {
              std::vector<Argument> arguments = {code,   outputs,   terms,
                                                 chunks, run.in(0), run.workspace};
              arguments.insert(arguments.end(), numbers.begin(), numbers.end());
              device.run(first, items(outputs * chunks), arguments);
              device.run(second, items(outputs),
                         {code, outputs, terms, chunks, run.workspace, run.out(0)});
            }};
  };
}

}  // namespace

std::vector<KernelDefinition> reduction_kernels() {
  return {{"reduce_sum", reduction(ReduceOp::sum)},
          {"reduce_mean", reduction(ReduceOp::mean)},
          {"reduce_max", reduction(ReduceOp::max)},
          {"reduce_min", reduction(ReduceOp::min)}};
}

}  // namespace artel::opencl
