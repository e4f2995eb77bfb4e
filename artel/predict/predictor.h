// Inference with a trained network.
//
//   artel::Predictor predictor(model, {artel::DType::f32, {1, 28, 28}},
//                              artel::checkpoint::load_weights("model.safetensors"));
//   artel::Tensor logits = predictor(images);  // images: [rows, 1, 28, 28]
//
// Needs no Trainer. Computes with quantised matrices (tensor/quantised.h) directly. Compiled
// programs are cached by number of rows. The result of a row does not depend on other rows or on
// the number of threads. Not thread safe.
#pragma once

#include "artel/predict/evaluator.h"
#include "artel/predict/quantised_weights.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

class Predictor {
 public:
  // `sample` is the type of one row. Throws if a weight of the model is missing or has another
  // shape. `device` as in exec/devices.h.
  Predictor(const Model& model, const TensorType& sample, const NamedTensors& weights,
            int threads = 1, const std::string& device = "cpu");

  // The values of an output, in the order of the rows; by default the last value of the network.
  // nn::output adds further outputs. Throws if the type of the rows differs from `sample`.
  Tensor operator()(const Tensor& rows, std::string_view output = "prediction");
  // Computes several outputs in one pass.
  std::vector<Tensor> operator()(const Tensor& rows, const std::vector<std::string>& outputs);

 private:
  void check(const Tensor& rows) const;

  TensorType sample_;
  KernelChoices choices_;
  QuantisedWeights weights_;
  Evaluator evaluator_;
};

}  // namespace artel
