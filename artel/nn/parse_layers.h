// Networks as text, for configuration files: one layer per line, as docs/models.md describes.
//
//   const artel::Model network = artel::nn::parse_layers(
//       {"conv 64 3x3 padding same no_bias", "batch_norm", "relu", "max_pool 2",
//        "residual { conv 64 3x3 padding 1 | batch_norm } shortcut { conv 64 1x1 }", "flatten",
//        "head: dense 10"});
//
// A layer of your own:
//
//   artel::nn::register_layer("shift", "BY", [](artel::nn::LayerWords& words) {
//     const double by = words.number("by", -10, 10);
//     return artel::nn::Layer("shift", [by](artel::nn::Build&, artel::Value x) {
//       return artel::add_scalar(x, by);
//     });
//   });
//   const artel::Model model = artel::nn::parse_layers({"flatten", "shift 0.5", "dense 10"});
//
// Parameters are named as in PyTorch's Sequential: by the layer's index, or by the name before a
// colon.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "artel/nn/layer.h"
#include "artel/nn/layer_words.h"

namespace artel::nn {

// Throws an Error of kind invalid_argument that names the layer's index and its text. Safe for
// untrusted text: depth, number of words and sizes are bounded.
Layer parse_layers(const std::vector<std::string>& lines);

// Registers a custom kind of layer for texts and configuration files. `arguments` documents the
// words after its name, such as "UNITS [no_bias]"; `parse` consumes them. Replaces a layer that the
// program registered earlier. Throws for a built-in name and for a name that is not a word.
void register_layer(const std::string& name, const std::string& arguments,
                    std::function<Layer(LayerWords&)> parse);

// The syntax of each kind of layer, such as "dropout [PROBABILITY]".
std::vector<std::string> layer_syntax();

}  // namespace artel::nn
