// Networks by name, for configuration files and the command line.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "artel/nn/layer.h"

namespace artel::nn {

// What can be varied; 0 means as published.
struct ModelOptions {
  int64_t classes = 0;        // of the last layer; autoencoders have none and ignore it
  bool small_images = false;  // the variant for 32 x 32 of networks made for 224 x 224
  int64_t width = 0;          // channels of the first stage, or units of the hidden layers
};

struct ModelDescription {
  std::string name;
  std::string text;  // one line
  Shape input;       // of the images that it was made for
};

// In the order in which people should read them.
std::vector<ModelDescription> model_list();

// Throws for an unknown name, with the nearest known one, and for an option that the network has
// not.
Layer model_by_name(const std::string& name, const ModelOptions& options = {});

}  // namespace artel::nn
