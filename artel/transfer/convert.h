// Converts weights of other frameworks to the parameter names and axis order of the zoo.
#pragma once

#include <string>

#include "artel/tensor/named_tensor.h"

namespace artel::transfer {

struct KerasOptions {
  double epsilon = 1e-3;  // of the batch norms; the zoo has 1e-5
  bool bgr = false;       // channel order of its pictures; the zoo has RGB
};

// Converts Keras and TensorFlow.js networks: "layer/kernel", channels last. `model` is a zoo
// network: a ResNet-50, a MobileNetV2, or a VGG. Biases of convolutions that have none in the zoo
// are moved into the following batch norm. The result is the same function up to rounding. Skips
// layers that the zoo network does not have. Throws an Error of kind corrupt for a kernel of
// unknown rank.
NamedTensors convert_keras(const std::string& model, const NamedTensors& published,
                           const KerasOptions& options);

// Converts the face network for TensorFlow.js. The scale after each convolution is folded into it.
NamedTensors convert_faces(const NamedTensors& published);

}  // namespace artel::transfer
