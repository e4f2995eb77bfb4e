// Exports a network as an ONNX model.
#pragma once

#include <string>

#include "artel/nn/model.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

// Returns the content of an ONNX file with the input "x", for batches of `samples` samples, and the
// output "prediction". Quantised weights of 8 bits with one scale per row keep their codes, which
// the model dequantises; others are expanded to f32. Throws an Error of kind unsupported that names
// the op and layer if an op has no ONNX equivalent here, and of kind shape if the weights do not
// fit.
std::string onnx_model(const Model& model, const TensorType& sample, const NamedTensors& weights,
                       int64_t samples = 1);

}  // namespace artel
