#include <limits>

#include "artel/exec/cpu/ops/shapes.h"
#include "artel/exec/cpu/ops/shared.h"
#include "artel/exec/opencl/ops/catalogue.h"
#include "artel/exec/opencl/ops/products.h"
#include "artel/exec/opencl/ops/shared.h"

namespace artel::opencl {
namespace {

using kernels::ConvShape;

// Images are channels-last, weights [height, width, in / groups, out]. With one group, the patches
// of a few images at a time form a matrix [pixels, height * width * in], and all passes are matrix
// products: y = patches w, dw = patches^T dy, and dpatches = dy w^T, whose elements are then
// gathered into dx. With several groups, one work item computes each element.
constexpr std::string_view kConvolutionSource = R"(
#define CONV int h, int w, int c, int k, int kh, int kw, int stride_h, int stride_w, int top, \
             int left, int dilation_h, int dilation_w, int groups, int out_h, int out_w

__kernel void patches(int n, CONV, IN(float, x), OUT(float, y)) {
  USE_IN(float, x);
  USE_OUT(float, y);
  const int i = get_global_id(0);
  if (i >= n) return;
  int rest = i;
  const int channel = rest % c; rest /= c;
  const int across = rest % kw; rest /= kw;
  const int down = rest % kh; rest /= kh;
  const int column = rest % out_w; rest /= out_w;
  const int row = rest % out_h; rest /= out_h;
  const int from_row = row * stride_h - top + down * dilation_h;
  const int from_column = column * stride_w - left + across * dilation_w;
  const bool inside = from_row >= 0 && from_row < h && from_column >= 0 && from_column < w;
  y[i] = inside ? x[(((long)rest * h + from_row) * w + from_column) * c + channel] : 0.0f;
}

/* Each element of an image adds up its places in the patches. */
__kernel void gather_patches(int n, CONV, IN(float, y), OUT(float, x)) {
  USE_IN(float, y);
  USE_OUT(float, x);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int channel = i % c, at_column = i / c % w, at_row = i / c / w % h;
  const long image = i / c / w / h;
  float sum = 0;
  for (int down = 0; down < kh; ++down) {
    const int from_row = at_row + top - down * dilation_h;
    if (from_row < 0 || from_row % stride_h != 0 || from_row / stride_h >= out_h) continue;
    for (int across = 0; across < kw; ++across) {
      const int from_column = at_column + left - across * dilation_w;
      if (from_column < 0 || from_column % stride_w != 0 || from_column / stride_w >= out_w)
        continue;
      const long pixel = (image * out_h + from_row / stride_h) * out_w + from_column / stride_w;
      sum += y[((pixel * kh + down) * kw + across) * c + channel];
    }
  }
  x[i] = sum;
}

__kernel void grouped_forward(int n, CONV, int relu, float most, IN(float, x), IN(float, weights),
                              IN(float, bias), OUT(float, y)) {
  USE_IN(float, x);
  USE_IN(float, weights);
  USE_IN(float, bias);
  USE_OUT(float, y);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int to = i % k, column = i / k % out_w, row = i / k / out_w % out_h;
  const long image = i / k / out_w / out_h;
  const int width = c / groups, first = to / (k / groups) * width;
  float sum = 0;
  for (int down = 0; down < kh; ++down) {
    const int from_row = row * stride_h - top + down * dilation_h;
    if (from_row < 0 || from_row >= h) continue;
    for (int across = 0; across < kw; ++across) {
      const int from_column = column * stride_w - left + across * dilation_w;
      if (from_column < 0 || from_column >= w) continue;
      __global const float* pixel = x + ((image * h + from_row) * w + from_column) * c + first;
      __global const float* tap = weights + (long)(down * kw + across) * width * k + to;
      for (int channel = 0; channel < width; ++channel)
        sum = fma(pixel[channel], tap[(long)channel * k], sum);
    }
  }
  if (bias) sum += bias[to];
  if (relu) sum = sum < 0 ? 0.0f : sum > most ? most : sum;
  y[i] = sum;
}

__kernel void grouped_dx(int n, CONV, IN(float, dy), IN(float, weights), OUT(float, dx)) {
  USE_IN(float, dy);
  USE_IN(float, weights);
  USE_OUT(float, dx);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int channel = i % c, at_column = i / c % w, at_row = i / c / w % h;
  const long image = i / c / w / h;
  const int width = c / groups, outs = k / groups, first = channel / width * outs;
  float sum = 0;
  for (int down = 0; down < kh; ++down) {
    const int from_row = at_row + top - down * dilation_h;
    if (from_row < 0 || from_row % stride_h != 0 || from_row / stride_h >= out_h) continue;
    for (int across = 0; across < kw; ++across) {
      const int from_column = at_column + left - across * dilation_w;
      if (from_column < 0 || from_column % stride_w != 0 || from_column / stride_w >= out_w)
        continue;
      const long pixel = (image * out_h + from_row / stride_h) * out_w + from_column / stride_w;
      __global const float* from = dy + pixel * k + first;
      __global const float* tap =
          weights + ((long)(down * kw + across) * width + channel % width) * k + first;
      for (int to = 0; to < outs; ++to) sum = fma(from[to], tap[to], sum);
    }
  }
  dx[i] = sum;
}

__kernel void grouped_dw(int n, CONV, int images, IN(float, x), IN(float, dy), OUT(float, dw)) {
  USE_IN(float, x);
  USE_IN(float, dy);
  USE_OUT(float, dw);
  const int i = get_global_id(0);
  if (i >= n) return;
  const int width = c / groups, to = i % k, channel = to / (k / groups) * width + i / k % width;
  const int across = i / k / width % kw, down = i / k / width / kw;
  float sum = 0;
  for (int image = 0; image < images; ++image)
    for (int row = 0; row < out_h; ++row) {
      const int from_row = row * stride_h - top + down * dilation_h;
      if (from_row < 0 || from_row >= h) continue;
      for (int column = 0; column < out_w; ++column) {
        const int from_column = column * stride_w - left + across * dilation_w;
        if (from_column < 0 || from_column >= w) continue;
        sum = fma(x[(((long)image * h + from_row) * w + from_column) * c + channel],
                  dy[(((long)image * out_h + row) * out_w + column) * k + to], sum);
      }
    }
  dw[i] = sum;
}

__kernel void add_bias(int n, int channels, IN(float, bias), OUT(float, y)) {
  USE_IN(float, bias);
  USE_OUT(float, y);
  if (get_global_id(0) < n) y[get_global_id(0)] += bias[get_global_id(0) % channels];
}
)";

class Convolutions {
 public:
  Convolutions(OpenClDevice& device, const ConvShape& shape)
      : device_(&device),
        shape_(shape),
        products_(device),
        patches_(kernel("patches")),
        gather_(kernel("gather_patches")),
        forward_(kernel("grouped_forward")),
        dx_(kernel("grouped_dx")),
        dw_(kernel("grouped_dw")),
        add_bias_(kernel("add_bias")) {}

  // Room for the patches of as many images as fit into about 64 MiB.
  size_t workspace_bytes() const {
    return shape_.groups > 1 || is_product()
               ? 0
               : static_cast<size_t>(images_at_once() * pixels() * taps()) * sizeof(float);
  }

  void forward(const float* x, const float* w, const float* bias, bool relu, float most, float* y,
               void* workspace) const {
    const Activation activation = relu ? Activation::relu : Activation::none;
    if (shape_.groups > 1) {
      const int64_t n = shape_.n * pixels() * shape_.k;
      return run(forward_, n, {relu, most, x, w, bias, y});
    }
    for_each_part([&](int64_t image, int64_t images) {
      products_.run({.m = images * pixels(),
                     .n = shape_.k,
                     .k = taps(),
                     .a = patches_of(x, image, images, workspace),
                     .lda = taps(),
                     .b = w,
                     .ldb = shape_.k,
                     .c = y + image * pixels() * shape_.k,
                     .ldc = shape_.k,
                     .bias = bias,
                     .activation = activation,
                     .most = most});
    });
  }

  void backward_data(const float* dy, const float* w, float* dx, void* workspace) const {
    const int64_t input = shape_.h * shape_.w * shape_.c;
    if (shape_.groups > 1) return run(dx_, shape_.n * input, {dy, w, dx});
    for_each_part([&](int64_t image, int64_t images) {
      float* const to = dx + image * input;
      float* const places = is_product() ? to : static_cast<float*>(workspace);
      products_.run({.m = images * pixels(),
                     .n = taps(),
                     .k = shape_.k,
                     .a = dy + image * pixels() * shape_.k,
                     .lda = shape_.k,
                     .b = w,
                     .ldb = shape_.k,
                     .transpose_b = true,
                     .c = places,
                     .ldc = taps()});
      if (!is_product()) run(gather_, images * input, {places, to});
    });
  }

  void backward_weights(const float* x, const float* dy, float* dw, void* workspace) const {
    if (shape_.groups > 1) {
      const int64_t n = taps() / shape_.groups * shape_.k;
      return run(dw_, n, {shape_.n, x, dy, dw});
    }
    for_each_part([&](int64_t image, int64_t images) {
      products_.run({.m = taps(),
                     .n = shape_.k,
                     .k = images * pixels(),
                     .a = patches_of(x, image, images, workspace),
                     .lda = taps(),
                     .transpose_a = true,
                     .b = dy + image * pixels() * shape_.k,
                     .ldb = shape_.k,
                     .c = dw,
                     .ldc = shape_.k,
                     .accumulate = image > 0});
    });
  }

  // Adds the bias to the larger image.
  void add_bias(const float* bias, float* x) const {
    const int64_t n = shape_.n * shape_.h * shape_.w * shape_.c;
    device_->run(add_bias_, items(n), {n, shape_.c, bias, x});
  }

 private:
  BuiltKernel kernel(const char* name) const { return device_->kernel(kConvolutionSource, name); }
  int64_t pixels() const { return shape_.out_h() * shape_.out_w(); }
  int64_t taps() const { return shape_.kh * shape_.kw * shape_.c; }
  // True for a 1 x 1 convolution, whose patch matrix is the image itself.
  bool is_product() const {
    return taps() == shape_.c && shape_.stride_h == 1 && shape_.stride_w == 1 &&
           pixels() == shape_.h * shape_.w && shape_.pad_top == 0 && shape_.pad_left == 0;
  }
  int64_t images_at_once() const {
    constexpr int64_t kMostFloats = int64_t{16} << 20;
    const int64_t most = kMostFloats / std::max<int64_t>(1, pixels() * taps());
    return std::clamp<int64_t>(most, 1, std::max<int64_t>(1, shape_.n));
  }

  template <typename Part>
  void for_each_part(const Part& part) const {
    const int64_t most = images_at_once();
    for (int64_t image = 0; image < shape_.n; image += most)
      part(image, std::min(most, shape_.n - image));
  }

  const float* patches_of(const float* x, int64_t image, int64_t images, void* workspace) const {
    const float* const from = x + image * shape_.h * shape_.w * shape_.c;
    if (is_product()) return from;
    run(patches_, images * pixels() * taps(), {from, workspace});
    return static_cast<const float*>(workspace);
  }

  // Launches `n` work items. The arguments are n, the shape, and `more`.
  void run(BuiltKernel kernel, int64_t n, std::initializer_list<Argument> more) const {
    const ConvShape& s = shape_;
    std::vector<Argument> arguments = {
        n,          s.h,        s.w,       s.c,        s.k,          s.kh,         s.kw,
        s.stride_h, s.stride_w, s.pad_top, s.pad_left, s.dilation_h, s.dilation_w, s.groups,
        s.out_h(),  s.out_w()};
    arguments.insert(arguments.end(), more);
    device_->run(kernel, items(n), arguments);
  }

  OpenClDevice* device_;
  ConvShape shape_;
  Products products_;
  BuiltKernel patches_, gather_, forward_, dx_, dw_, add_bias_;
};

Kernel make_conv_forward(const KernelRequest& request) {
  const bool bias = request.inputs() == 3, relu = request.attributes().flag("relu");
  const auto most = static_cast<float>(
      request.attributes().number("most", std::numeric_limits<double>::infinity()));
  const Convolutions conv(device_of(request), conv_shape(request.attributes(), request.in(0),
                                                         request.in(1), request.out()));
  return {{}, conv.workspace_bytes(), [=](const KernelRun& run) {
            conv.forward(run.in(0), run.in(1), bias ? run.in(2) : nullptr, relu, most, run.out(0),
                         run.workspace);
          }};
}

Kernel make_conv_data(const KernelRequest& request) {
  const Convolutions conv(device_of(request), conv_shape(request.attributes(), request.out(),
                                                         request.in(1), request.in(0)));
  return {{}, conv.workspace_bytes(), [=](const KernelRun& run) {
            conv.backward_data(run.in(0), run.in(1), run.out(0), run.workspace);
          }};
}

Kernel make_conv_weights(const KernelRequest& request) {
  const Convolutions conv(device_of(request), conv_shape(request.attributes(), request.in(0),
                                                         request.out(), request.in(1)));
  return {{}, conv.workspace_bytes(), [=](const KernelRun& run) {
            conv.backward_weights(run.in(0), run.in(1), run.out(0), run.workspace);
          }};
}

// The transposed convolution is the data gradient of the convolution from its output to its input.
Kernel make_conv_transposed(const KernelRequest& request) {
  const Convolutions conv(device_of(request), conv_shape(request.attributes(), request.out(),
                                                         request.in(1), request.in(0)));
  const bool bias = request.inputs() == 3;
  return {{}, conv.workspace_bytes(), [=](const KernelRun& run) {
            conv.backward_data(run.in(0), run.in(1), run.out(0), run.workspace);
            if (bias) conv.add_bias(run.in(2), run.out(0));
          }};
}

}  // namespace

std::vector<KernelDefinition> convolution_kernels() {
  return {{"conv2d", make_conv_forward},
          {"conv2d_backward_data", make_conv_data},
          {"conv2d_backward_weights", make_conv_weights},
          {"conv_transpose2d", make_conv_transposed}};
}

}  // namespace artel::opencl
