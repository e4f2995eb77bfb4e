#include "artel/nn/zoo/vgg.h"

#include <algorithm>
#include <array>
#include <map>

#include "artel/base/error.h"
#include "artel/nn/initialisers.h"
#include "artel/nn/layers.h"

namespace artel::nn {
namespace {

// Convolutions in each of the five blocks between poolings.
const std::array<int, 5>& block_sizes(int depth) {
  static const std::map<int, std::array<int, 5>> sizes = {
      {11, {1, 1, 2, 2, 2}}, {13, {2, 2, 2, 2, 2}}, {16, {2, 2, 3, 3, 3}}, {19, {2, 2, 4, 4, 4}}};
  const auto found = sizes.find(depth);
  require(found != sizes.end(), ErrorKind::invalid_argument,
          "[vgg] depth: got {}, expected 11, 13, 16 or 19", depth);
  return found->second;
}

Layer features(int depth, const VggOptions& options) {
  const bool bias = !(options.batch_norm && options.small_images);
  const std::array<int, 5>& sizes = block_sizes(depth);
  std::vector<Layer> layers;
  for (size_t block = 0; block < sizes.size(); ++block) {
    const int64_t channels = options.width * (int64_t{1} << std::min<size_t>(block, 3));
    for (int i = 0; i < sizes[block]; ++i) {
      layers.push_back(
          conv(channels, {3, 3}, {.padding = {1, 1}, .bias = bias, .weight = he_normal_fan_out()}));
      if (options.batch_norm) layers.push_back(batch_norm());
      layers.push_back(relu());
    }
    layers.push_back(max_pool({2, 2}));
  }
  return sequential(std::move(layers));
}

Layer classifier(const VggOptions& options) {
  const int64_t hidden = 64 * options.width;
  const DenseOptions narrow = {.weight = normal(0.01f)};
  return sequential({dense(hidden, narrow), relu(), dropout(options.dropout), dense(hidden, narrow),
                     relu(), dropout(options.dropout), dense(options.classes, narrow)});
}

}  // namespace

Layer vgg(int depth, const VggOptions& options) {
  std::vector<Layer> parts = {named("features", features(depth, options))};
  if (!options.small_images) parts.push_back(named("avgpool", adaptive_average_pool(7, 7)));
  parts.push_back(named("flatten", flatten()));
  parts.push_back(
      named("classifier", options.small_images ? dense(options.classes) : classifier(options)));
  return chain(std::move(parts));
}

}  // namespace artel::nn
