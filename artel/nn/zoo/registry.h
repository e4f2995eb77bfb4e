// Networks by name, for configuration files and the command line.
//
//   artel::nn::register_model({.name = "one_layer", .text = "a dense layer", .input = {784}},
//                             [](const artel::nn::ModelOptions& options) {
//                               return artel::nn::sequential(
//                                   {artel::nn::flatten(), artel::nn::dense(options.classes)});
//                             });
//   const artel::Model model = artel::nn::model_by_name("one_layer", {.classes = 10});
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// Variable properties; 0 means as published.
struct ModelOptions {
  int64_t classes = 0;        // of the last layer, or tokens in the vocabulary; ignored by
                              // autoencoders, which have none
  bool small_images = false;  // the variant for 32 x 32 of networks made for 224 x 224
  int64_t width = 0;          // channels of the first stage, or units of the hidden layers
  // For transformers.
  int64_t depth = 0, heads = 0;
  int64_t key_heads = 0;     // of Llama: heads share keys and values; 0 with other heads than
                             // published: none do
  int64_t positions = 0;     // the most that a sample can have
  int64_t vocabulary = 0;    // if `classes` is something else
  int64_t patch = 0;         // side of the patches of an image
  int64_t hidden = 0;        // units of feed-forward networks; 0: in proportion to the width
  std::string activation;    // of feed-forward networks: a name of activation_names()
  double epsilon = 0;        // of layer norms
  double rotary_base = 0;    // of Llama's rotary positions
  bool untied_head = false;  // token scores do not use the token table
  double dropout = 0;
};

// The target of a sample: its class, a class for each position, or the sample itself.
enum class ModelTarget { label, labels, input };

struct ModelDescription {
  std::string name;
  std::string text;               // one line
  Shape input;                    // of the samples it was designed for
  DType input_type = DType::f32;  // i32: tokens
  ModelTarget target = ModelTarget::label;
};

// The type of the target of one sample.
TensorType target_of(const ModelDescription& model, const TensorType& sample);

// In the order in which to list them.
std::vector<ModelDescription> model_list();

// Registers a custom network for configuration files and the command line. Replaces one that the
// program registered earlier. Throws for a built-in name.
void register_model(const ModelDescription& description,
                    std::function<Layer(const ModelOptions&)> make);

// Throws for an unknown name, with the nearest known one, and for an option that the network does
// not have.
Layer model_by_name(const std::string& name, const ModelOptions& options = {});

// The options of a transformer, with published values in place of 0 and "". Throws for any other
// network.
ModelOptions complete_options(const std::string& name, const ModelOptions& options);

}  // namespace artel::nn
