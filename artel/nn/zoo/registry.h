// Networks by name, for configuration files and the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// What can be varied; 0 means as published.
struct ModelOptions {
  int64_t classes = 0;        // of the last layer, or tokens of the vocabulary; autoencoders have
                              // none and ignore it
  bool small_images = false;  // the variant for 32 x 32 of networks made for 224 x 224
  int64_t width = 0;          // channels of the first stage, or units of the hidden layers
  // Of transformers.
  int64_t depth = 0, heads = 0;
  int64_t positions = 0;     // the most of a sample
  int64_t vocabulary = 0;    // where `classes` is something else
  int64_t patch = 0;         // side of the patches of an image
  int64_t hidden = 0;        // units of feed-forward networks; 0: four times the width
  std::string activation;    // of feed-forward networks: gelu, gelu_tanh, relu or silu
  double epsilon = 0;        // of layer norms
  bool untied_head = false;  // scores of tokens do not come from the table of tokens
  double dropout = 0;
};

// What a network is trained to say of a sample: its class, a class for each position, or itself.
enum class ModelTarget { label, labels, input };

struct ModelDescription {
  std::string name;
  std::string text;               // one line
  Shape input;                    // of the samples that it was made for
  DType input_type = DType::f32;  // i32: tokens
  ModelTarget target = ModelTarget::label;
};

// The type of the target of one sample.
TensorType target_of(const ModelDescription& model, const TensorType& sample);

// In the order in which people should read them.
std::vector<ModelDescription> model_list();

// Throws for an unknown name, with the nearest known one, and for an option that the network has
// not.
Layer model_by_name(const std::string& name, const ModelOptions& options = {});

// The options of a transformer with its published values in place of 0 and "". Throws for another
// network.
ModelOptions complete_options(const std::string& name, const ModelOptions& options);

}  // namespace artel::nn
