// dlib's face recognition network (King, 2017): a ResNet of 29 layers. Outputs for two pictures of
// one person differ by less than 0.6 (Euclidean distance). Names match the weights for
// TensorFlow.js: conv32_down, conv32_1.conv1, ..., fc. Batch norms are folded into the
// convolutions, as published.
#pragma once

#include "artel/nn/layer.h"

namespace artel::nn {

struct FaceResNetOptions {
  int64_t outputs = 128;
};

// Faces [batch, 3, 150, 150] to [batch, outputs].
Layer face_resnet(const FaceResNetOptions& options = {});

}  // namespace artel::nn
