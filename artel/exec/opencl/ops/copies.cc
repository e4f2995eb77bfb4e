#include "artel/exec/opencl/ops/copies.h"

#include "artel/base/error.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

constexpr size_t kCopyAxes = 6;
constexpr std::string_view kCopySource = R"(
__kernel void strided_copy(int n, IN(float, from), OUT(float, to),
                           int e0, int e1, int e2, int e3, int e4, int e5,
                           int f0, int f1, int f2, int f3, int f4, int f5,
                           int t0, int t1, int t2, int t3, int t4, int t5) {
  USE_IN(float, from);
  USE_OUT(float, to);
  int rest = get_global_id(0);
  if (rest >= n) return;
  const int i5 = rest % e5; rest /= e5;
  const int i4 = rest % e4; rest /= e4;
  const int i3 = rest % e3; rest /= e3;
  const int i2 = rest % e2; rest /= e2;
  const int i1 = rest % e1; rest /= e1;
  const int i0 = rest;
  to[i0 * t0 + i1 * t1 + i2 * t2 + i3 * t3 + i4 * t4 + i5 * t5] =
      from[i0 * f0 + i1 * f1 + i2 * f2 + i3 * f3 + i4 * f4 + i5 * f5];
}

__kernel void dense_copy(int n, IN(float, from), OUT(float, to)) {
  USE_IN(float, from);
  USE_OUT(float, to);
  if (get_global_id(0) < n) to[get_global_id(0)] = from[get_global_id(0)];
}

__kernel void add_into(int n, IN(float, from), OUT(float, into)) {
  USE_IN(float, from);
  USE_OUT(float, into);
  if (get_global_id(0) < n) into[get_global_id(0)] += from[get_global_id(0)];
}

__kernel void fill(int n, float value, OUT(float, to)) {
  USE_OUT(float, to);
  if (get_global_id(0) < n) to[get_global_id(0)] = value;
}
)";

struct CopyAxis {
  int64_t extent, from, to;
};

// Drops axes of extent 1 and merges neighbouring axes where possible.
std::vector<CopyAxis> merged_axes(const std::vector<int64_t>& extents,
                                  const std::vector<int64_t>& from,
                                  const std::vector<int64_t>& to) {
  std::vector<CopyAxis> axes;
  for (size_t i = 0; i < extents.size(); ++i) {
    if (extents[i] == 1) continue;
    const CopyAxis axis = {extents[i], from[i], to[i]};
    if (!axes.empty() && axes.back().from == axis.from * axis.extent &&
        axes.back().to == axis.to * axis.extent)
      axes.back() = {axes.back().extent * axis.extent, axis.from, axis.to};
    else
      axes.push_back(axis);
  }
  return axes;
}

}  // namespace

StridedCopy::StridedCopy(OpenClDevice& device, const std::vector<int64_t>& extents,
                         const std::vector<int64_t>& from, const std::vector<int64_t>& to)
    : device_(&device) {
  for (const int64_t extent : extents) elements_ *= extent;
  std::vector<CopyAxis> axes;
  if (elements_ > 0) axes = merged_axes(extents, from, to);
  require(axes.size() <= kCopyAxes, ErrorKind::unsupported,
          "[opencl] a copy has {} axes that cannot be merged, expected at most {}", axes.size(),
          kCopyAxes);
  const bool dense = axes.empty() || (axes.size() == 1 && axes[0].from == 1 && axes[0].to == 1);
  kernel_ = device.kernel(kCopySource, dense ? "dense_copy" : "strided_copy");
  if (dense) return;
  axes.insert(axes.begin(), kCopyAxes - axes.size(), CopyAxis{1, 0, 0});
  for (const CopyAxis& axis : axes) numbers_.emplace_back(axis.extent);
  for (const CopyAxis& axis : axes) numbers_.emplace_back(axis.from);
  for (const CopyAxis& axis : axes) numbers_.emplace_back(axis.to);
}

void StridedCopy::run(const float* from, float* to) const {
  std::vector<Argument> arguments = {elements_, from, to};
  arguments.insert(arguments.end(), numbers_.begin(), numbers_.end());
  device_->run(kernel_, items(elements_), arguments);
}

Fill::Fill(OpenClDevice& device) : device_(&device), kernel_(device.kernel(kCopySource, "fill")) {}

void Fill::run(float* to, int64_t n, float value) const {
  device_->run(kernel_, items(n), {n, value, to});
}

void add_memory(const Memory& from, const Memory& into) {
  const auto n = static_cast<int64_t>(into.bytes() / sizeof(float));
  require(from.bytes() == into.bytes() && &from.device() == &into.device(), ErrorKind::internal,
          "[opencl] a sum of memory: got {} and {} bytes on {} and {}", from.bytes(), into.bytes(),
          from.device().name(), into.device().name());
  OpenClDevice& device = device_of(into.device());
  device.run(device.kernel(kCopySource, "add_into"), items(n), {n, from.address(), into.address()});
}

Kernel make_layout_change(const Shape& shape, const Layout& from, const Layout& to,
                          Device& device) {
  // In target order, so that neighbouring work items write neighbouring memory.
  const std::vector<int64_t> from_strides = strides_of(shape, from),
                             to_strides = strides_of(shape, to);
  std::vector<int64_t> extents, sources, targets;
  for (int i = 0; i < shape.rank(); ++i) {
    const auto axis = static_cast<size_t>(to.order.empty() ? i : to.order[static_cast<size_t>(i)]);
    extents.push_back(shape[static_cast<int>(axis)]);
    sources.push_back(from_strides[axis]);
    targets.push_back(to_strides[axis]);
  }
  const StridedCopy copy(device_of(device), extents, sources, targets);
  return {{}, 0, [=](const KernelRun& run) { copy.run(run.in(0), run.out(0)); }};
}

}  // namespace artel::opencl
