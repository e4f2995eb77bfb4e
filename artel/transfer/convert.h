// Weights of other frameworks' networks under the names, and in the order of axes, of our zoo.
#pragma once

#include <string>

#include "artel/tensor/named_tensor.h"

namespace artel::transfer {

struct KerasOptions {
  double epsilon = 1e-3;  // of its batch norms; ours have 1e-5
  bool bgr = false;       // its pictures begin with blue; ours with red
};

// Keras (and TensorFlow.js) networks: "layer/kernel", channels last. `model` is the zoo's: a
// ResNet-50, a MobileNetV2 or a VGG. Convolutions there may have a bias that ours lack: the batch
// norm after it takes it over. The result is the same function up to rounding. Layers that ours do
// not have are left out. Throws an Error of kind corrupt for a kernel of an unknown rank.
NamedTensors convert_keras(const std::string& model, const NamedTensors& published,
                           const KerasOptions& options);

// The face network for TensorFlow.js: the scale after each convolution becomes part of it.
NamedTensors convert_faces(const NamedTensors& published);

}  // namespace artel::transfer
