#include "artel/nn/zoo/face.h"

#include "artel/graph/ops.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/layers.h"

namespace artel::nn {
namespace {

Layer face_convolution(int64_t channels, int64_t kernel, bool halves) {
  const int64_t padding = halves ? 0 : kernel / 2, stride = halves ? 2 : 1;
  return conv(
      channels, {kernel, kernel},
      {.stride = {stride, stride}, .padding = {padding, padding}, .weight = he_normal_fan_out()});
}

Layer face_body(int64_t channels, bool halves) {
  return chain({named("conv1", face_convolution(channels, 3, halves)), named("relu", relu()),
                named("conv2", face_convolution(channels, 3, false))});
}

// The shortcut averages blocks of four pixels. The branch with fewer channels or pixels is padded
// with zeros.
Layer halving_block(int64_t channels) {
  return {"residual", [=](Build& build, Value x) {
            Value main = face_body(channels, true)(build, x);
            Value side = artel::average_pool(x, {.kernel = {2, 2}, .stride = {2, 2}});
            for (const int axis : {2, 3})
              main = pad(main, axis, 0, side.shape()[axis] - main.shape()[axis]);
            side = pad(side, 1, 0, channels - side.shape()[1]);
            return artel::relu(add(main, side));
          }};
}

}  // namespace

Layer face_resnet(const FaceResNetOptions& options) {
  std::vector<Layer> parts = {named("conv32_down", face_convolution(32, 7, true)),
                              named("relu", relu()),
                              named("pool", max_pool({3, 3}, {.stride = {2, 2}}))};
  const auto append = [&](int64_t channels, int blocks) {
    for (int i = 1; i <= blocks; ++i)
      parts.push_back(
          named(fmt::format("conv{}_{}", channels, i), residual(face_body(channels, false))));
  };
  const auto append_halving = [&](int64_t channels, const char* suffix) {
    parts.push_back(named(fmt::format("conv{}_{}", channels, suffix), halving_block(channels)));
  };
  append(32, 3);
  append_halving(64, "down");
  append(64, 3);
  append_halving(128, "down");
  append(128, 2);
  append_halving(256, "down");
  append(256, 2);
  append_halving(256, "down_out");
  parts.push_back(named("average", adaptive_average_pool(1, 1)));
  parts.push_back(named("flatten", flatten()));
  parts.push_back(named("fc", dense(options.outputs, {.bias = false})));
  return chain(std::move(parts));
}

}  // namespace artel::nn
