#include "artel/predict/predictor.h"

#include "artel/base/error.h"
#include "artel/exec/devices.h"
#include "artel/predict/batches.h"

namespace artel {
namespace {

KernelChoices choices_for(const std::string& device) {
  KernelChoices choices;
  choices.device = &device_by_name(device);
  return choices;
}

}  // namespace

Predictor::Predictor(const Model& model, const TensorType& sample, const NamedTensors& weights,
                     int threads, const std::string& device)
    : sample_(sample),
      choices_(choices_for(device)),
      weights_(model, sample, weights, choices_),
      evaluator_(model, sample, std::nullopt, {}, weights_.parameters, choices_, threads, {}, 1,
                 weights_.matrices) {}

void Predictor::check(const Tensor& rows) const {
  require(rows.shape().rank() == sample_.shape.rank() + 1, ErrorKind::shape,
          "predict: got {}, expected rows of {}", to_string(rows.shape()), to_string(sample_));
  const TensorType expected = batch_of(sample_, rows.shape()[0]);
  const TensorType got = {rows.dtype(), rows.shape()};
  require(got == expected, ErrorKind::shape, "predict: got {}, expected {}", to_string(got),
          to_string(expected));
}

Tensor Predictor::operator()(const Tensor& rows, std::string_view output) {
  check(rows);
  return evaluator_.predict(rows, output);
}

std::vector<Tensor> Predictor::operator()(const Tensor& rows,
                                          const std::vector<std::string>& outputs) {
  check(rows);
  return evaluator_.predict(rows, outputs);
}

}  // namespace artel
