#include "artel/nn/zoo/mobilenet.h"

#include <algorithm>
#include <cmath>

#include "artel/base/error.h"
#include "artel/graph/ops.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/layers.h"

namespace artel::nn {
namespace {

constexpr int64_t kFirstChannels = 32, kLastChannels = 1280;

// Blocks that follow one another: the first of them has the stride.
struct MobileStage {
  int64_t expansion, channels, blocks, stride;
};
constexpr MobileStage kMobileStages[] = {{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2},
                                         {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2},
                                         {6, 320, 1, 1}};

// To the nearest multiple of 8, but never more than a tenth below.
int64_t scaled_channels(int64_t channels, double multiplier) {
  const double wanted = static_cast<double>(channels) * multiplier;
  const auto rounded = std::max<int64_t>(8, static_cast<int64_t>(wanted + 4) / 8 * 8);
  return static_cast<double>(rounded) < 0.9 * wanted ? rounded + 8 : rounded;
}

Layer relu6() {
  return {"relu6", [](Build&, Value x) { return clamp_max(artel::relu(x), 6); }};
}

Layer pad_end() {
  return {"pad_end", [](Build&, Value x) { return pad(pad(x, 2, 0, 1), 3, 0, 1); }};
}

struct MobileConv {
  int64_t channels, kernel = 1, stride = 1, groups = 1;
  bool pads_end = false;
};

Layer mobile_convolution(const MobileConv& c) {
  const bool at_end = c.pads_end && c.stride > 1;
  const int64_t padding = at_end ? 0 : c.kernel / 2;
  Layer convolution = conv(c.channels, {c.kernel, c.kernel},
                           {.stride = {c.stride, c.stride},
                            .padding = {padding, padding},
                            .groups = c.groups,
                            .bias = false,
                            .weight = he_normal_fan_out()});
  return at_end ? chain({named("pad", pad_end()), named("0", convolution)})
                : named("0", convolution);
}

// Convolution, batch norm, ReLU6: children 0, 1, 2.
Layer convolution_unit(const MobileConv& c) {
  return chain({mobile_convolution(c), named("1", batch_norm()), named("2", relu6())});
}

// Widens (unless the expansion is 1), filters each channel, and narrows again without a ReLU.
Layer inverted_residual(int64_t in, int64_t out, int64_t stride, int64_t expansion, bool pad_end) {
  const int64_t wide = in * expansion;
  std::vector<Layer> parts;
  if (expansion > 1) parts.push_back(convolution_unit({.channels = wide}));
  parts.push_back(convolution_unit(
      {.channels = wide, .kernel = 3, .stride = stride, .groups = wide, .pads_end = pad_end}));
  for (size_t i = 0; i < parts.size(); ++i) parts[i] = named(std::to_string(i), parts[i]);
  parts.push_back(named(std::to_string(parts.size()),
                        conv(out, {1, 1}, {.bias = false, .weight = he_normal_fan_out()})));
  parts.push_back(named(std::to_string(parts.size()), batch_norm()));
  Layer body = named("conv", chain(std::move(parts)));
  return stride == 1 && in == out ? residual(std::move(body), {}, false) : body;
}

}  // namespace

Layer mobilenet_v2(const MobileNetOptions& o) {
  require(o.multiplier > 0 && o.multiplier <= 8, ErrorKind::invalid_argument,
          "[mobilenet_v2] multiplier: got {}, expected a number above 0 and at most 8",
          o.multiplier);
  int64_t channels = scaled_channels(kFirstChannels, o.multiplier);
  std::vector<Layer> features = {
      convolution_unit({.channels = channels, .kernel = 3, .stride = 2, .pads_end = o.pad_end})};
  for (const MobileStage& stage : kMobileStages) {
    const int64_t out = scaled_channels(stage.channels, o.multiplier);
    for (int64_t i = 0; i < stage.blocks; ++i) {
      features.push_back(
          inverted_residual(channels, out, i == 0 ? stage.stride : 1, stage.expansion, o.pad_end));
      channels = out;
    }
  }
  features.push_back(
      convolution_unit({.channels = scaled_channels(kLastChannels, std::max(1.0, o.multiplier))}));
  for (size_t i = 0; i < features.size(); ++i) features[i] = named(std::to_string(i), features[i]);
  return chain({named("features", chain(std::move(features))),
                named("avgpool", adaptive_average_pool(1, 1)), named("flatten", flatten()),
                named("classifier", sequential({dropout(o.dropout),
                                                dense(o.classes, {.weight = normal(0.01f)})}))});
}

}  // namespace artel::nn
