#include "artel/nn/zoo/resnet.h"

#include <array>
#include <functional>
#include <map>

#include "artel/base/error.h"
#include "artel/graph/ops.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/layers.h"

namespace artel::nn {
namespace {

Layer convolution(int64_t channels, int64_t kernel, int64_t stride = 1) {
  return conv(channels, {kernel, kernel},
              {.stride = {stride, stride},
               .padding = {kernel / 2, kernel / 2},
               .bias = false,
               .weight = he_normal_fan_out()});
}

Layer basic_body(int64_t channels, int64_t stride) {
  return chain({named("conv1", convolution(channels, 3, stride)), named("bn1", batch_norm()),
                named("relu", relu()), named("conv2", convolution(channels, 3)),
                named("bn2", batch_norm())});
}

constexpr int64_t kBottleneckExpansion = 4;

Layer bottleneck_body(int64_t channels, int64_t stride, bool stride_first) {
  const int64_t first = stride_first ? stride : 1, second = stride_first ? 1 : stride;
  return chain({named("conv1", convolution(channels, 1, first)), named("bn1", batch_norm()),
                named("relu1", relu()), named("conv2", convolution(channels, 3, second)),
                named("bn2", batch_norm()), named("relu2", relu()),
                named("conv3", convolution(channels * kBottleneckExpansion, 1)),
                named("bn3", batch_norm())});
}

// 1x1 convolution and batch norm, where the shape changes.
Layer projection(int64_t channels, int64_t stride) {
  return named("downsample", sequential({convolution(channels, 1, stride), batch_norm()}));
}

// Every second pixel; the new channels are zero, half of them before and half after.
Layer subsample_and_pad(int64_t channels) {
  return {"subsample_and_pad", [channels](Build&, Value x) {
            const int64_t missing = channels - x.shape()[1];
            x = artel::average_pool(x, {.kernel = {1, 1}, .stride = {2, 2}});
            return pad(x, 1, missing / 2, missing - missing / 2);
          }};
}

struct Stages {
  std::vector<int> blocks;
  bool bottleneck = false;
};

const Stages& stages_of(int depth) {
  static const std::map<int, Stages> stages = {{18, {{2, 2, 2, 2}}},
                                               {34, {{3, 4, 6, 3}}},
                                               {50, {{3, 4, 6, 3}, true}},
                                               {101, {{3, 4, 23, 3}, true}},
                                               {152, {{3, 8, 36, 3}, true}}};
  const auto found = stages.find(depth);
  require(found != stages.end(), ErrorKind::invalid_argument,
          "[resnet] depth: got {}, expected 18, 34, 50, 101 or 152", depth);
  return found->second;
}

// Stages named layer1, layer2, ...; each but the first halves the image and doubles the channels.
// `block` makes a residual block from its channels, its stride and whether it begins its stage.
using Block = std::function<Layer(int64_t channels, int64_t stride, bool first)>;

void append_stages(std::vector<Layer>& parts, const std::vector<int>& blocks, int64_t width,
                   const Block& block) {
  for (size_t stage = 0; stage < blocks.size(); ++stage) {
    std::vector<Layer> layers;
    for (int i = 0; i < blocks[stage]; ++i)
      layers.push_back(block(width << stage, i == 0 && stage > 0 ? 2 : 1, i == 0));
    parts.push_back(named("layer" + std::to_string(stage + 1), sequential(std::move(layers))));
  }
}

void append_head(std::vector<Layer>& parts, const std::string& name, int64_t classes) {
  parts.push_back(named("avgpool", adaptive_average_pool(1, 1)));
  parts.push_back(named("flatten", flatten()));
  parts.push_back(named(name, dense(classes)));
}

}  // namespace

Layer resnet(int depth, const ResNetOptions& options) {
  const Stages& stages = stages_of(depth);
  const int64_t width = options.width;
  std::vector<Layer> parts = {
      named("conv1", options.small_images ? convolution(width, 3) : convolution(width, 7, 2)),
      named("bn1", batch_norm()), named("relu", relu())};
  if (!options.small_images)
    parts.push_back(named("maxpool", max_pool({3, 3}, {.stride = {2, 2}, .padding = {1, 1}})));
  append_stages(parts, stages.blocks, width, [&](int64_t channels, int64_t stride, bool first) {
    if (stages.bottleneck) {
      const Layer body = bottleneck_body(channels, stride, options.stride_first);
      return first ? residual(body, projection(channels * kBottleneckExpansion, stride))
                   : residual(body);
    }
    return stride > 1 ? residual(basic_body(channels, stride), projection(channels, stride))
                      : residual(basic_body(channels, stride));
  });
  append_head(parts, "fc", options.classes);
  return chain(std::move(parts));
}

Layer cifar_resnet(int depth, const CifarResNetOptions& options) {
  require(depth >= 8 && depth % 6 == 2, ErrorKind::invalid_argument,
          "[cifar_resnet] depth: got {}, expected 6n + 2, such as 20, 32, 44 or 56", depth);
  const int blocks = (depth - 2) / 6;
  std::vector<Layer> parts = {named("conv1", convolution(options.width, 3)),
                              named("bn1", batch_norm()), named("relu", relu())};
  append_stages(
      parts, {blocks, blocks, blocks}, options.width, [](int64_t channels, int64_t stride, bool) {
        return stride > 1 ? residual(basic_body(channels, stride), subsample_and_pad(channels))
                          : residual(basic_body(channels, stride));
      });
  append_head(parts, "linear", options.classes);
  return chain(std::move(parts));
}

}  // namespace artel::nn
