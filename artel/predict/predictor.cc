#include "artel/predict/predictor.h"

#include "artel/base/error.h"
#include "artel/exec/devices.h"
#include "artel/predict/batches.h"
#include "artel/predict/load_weights.h"

namespace artel {
namespace {

Parameters parameters_of(const Model& model, const TensorType& sample, KernelChoices& choices,
                         const NamedTensors& weights) {
  const Program program(inference_graph(model, batch_of(sample, 1)).graph, {}, choices);
  Parameters parameters(program.parameter_entries());
  load_weights(parameters, weights);
  return parameters;
}

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
      parameters_(parameters_of(model, sample, choices_, weights)),
      evaluator_(model, sample, std::nullopt, {}, parameters_, choices_, threads) {}

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
