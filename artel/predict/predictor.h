// Uses a trained network: outputs for rows of inputs.
//
//   artel::Predictor predictor(model, {artel::DType::f32, {1, 28, 28}},
//                              artel::checkpoint::load_weights("model.safetensors"));
//   artel::Tensor logits = predictor(images);  // images: [rows, 1, 28, 28]
//
// Needs no Trainer. What it compiles for a number of rows is kept, so later calls only compute. The
// result of a row does not depend on the rows beside it or on the number of threads. Not
// synchronised: one call at a time.
#pragma once

#include "artel/predict/evaluator.h"
#include "artel/tensor/named_tensor.h"

namespace artel {

class Predictor {
 public:
  // `sample` is the type of one row. Throws if a weight of the model is missing or has another
  // shape.
  Predictor(const Model& model, const TensorType& sample, const NamedTensors& weights,
            int threads = 1);

  // The outputs, in the order of the rows. Throws if the rows are of another type than `sample`. A
  // network with several outputs (nn::output) has others than its last value.
  Tensor operator()(const Tensor& rows, std::string_view output = "prediction");
  // Several outputs of one pass.
  std::vector<Tensor> operator()(const Tensor& rows, const std::vector<std::string>& outputs);

 private:
  void check(const Tensor& rows) const;

  TensorType sample_;
  KernelChoices choices_;
  Parameters parameters_;
  Evaluator evaluator_;
};

}  // namespace artel
