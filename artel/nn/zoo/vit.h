// Vision transformers (Dosovitskiy et al., 2020) with timm's names: patch_embed.proj, cls_token,
// pos_embed, blocks.0.attn.qkv, norm, head.
//
//   const artel::Model vit = artel::nn::vit({.classes = 10, .patch = 4, .width = 96, .depth = 6});
#pragma once

#include "artel/nn/layer.h"
#include "artel/nn/zoo/names.h"

namespace artel::nn {

struct VitOptions {
  int64_t classes = 1000;
  int64_t patch = 16;  // side of a patch; image sizes must be multiples of it
  int64_t width = 192;
  int64_t depth = 12;
  int64_t heads = 3;
  int64_t hidden = 0;  // units of feed-forward networks; 0 means 4 * width
  std::string activation = "gelu";
  double epsilon = 1e-6;  // of layer norms
  double dropout = 0;
};

// Images [batch, channels, height, width] to logits [batch, classes].
Layer vit(const VitOptions& options = {});

// torchvision's names.
NameRules vit_names();

}  // namespace artel::nn
