#include "artel/exec/cpu/ops/shapes.h"

namespace artel {

using kernels::ConvShape;
using kernels::PoolAxis;
using kernels::PoolShape;

ConvShape conv_shape(const Attributes& a, const Shape& x, const Shape& w, const Shape& y) {
  const auto &stride = a.integers("stride"), &padding = a.integers("padding"),
             &dilation = a.integers("dilation");
  ConvShape s;
  s.n = x[0], s.c = x[1], s.h = x[2], s.w = x[3];
  s.k = w[0], s.kh = w[2], s.kw = w[3];
  s.stride_h = stride[0], s.stride_w = stride[1];
  s.pad_top = s.pad_bottom = padding[0];
  s.pad_left = s.pad_right = padding[1];
  s.dilation_h = dilation[0], s.dilation_w = dilation[1];
  // A transposed convolution that pads its output by its stride or more makes rows that would hold
  // another window: what is before them ends where the last window does.
  if (s.out_h() != y[2])
    s.pad_bottom = (y[2] - 1) * s.stride_h + s.dilation_h * (s.kh - 1) + 1 - s.h - s.pad_top;
  if (s.out_w() != y[3])
    s.pad_right = (y[3] - 1) * s.stride_w + s.dilation_w * (s.kw - 1) + 1 - s.w - s.pad_left;
  s.groups = a.integer("groups");
  return s;
}

PoolShape pool_shape(const Attributes& a, const Shape& x) {
  PoolShape shape;
  shape.images = x[0];
  shape.channels = x[1];
  const auto axis = [&](int i) {
    return a.has("size") ? PoolAxis::adaptive(x[2 + i], a.integers("size")[i])
                         : PoolAxis::windows(x[2 + i], a.integers("kernel")[i],
                                             a.integers("stride")[i], a.integers("padding")[i]);
  };
  shape.height = axis(0);
  shape.width = axis(1);
  return shape;
}

}  // namespace artel
