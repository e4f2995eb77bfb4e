#include "artel/predict/quantised_weights.h"

#include "artel/exec/program.h"
#include "artel/predict/batches.h"
#include "artel/predict/load_weights.h"
#include "artel/tensor/quantised.h"

namespace artel {

std::map<std::string, QuantisedType> quantised_types(const NamedTensors& weights) {
  std::map<std::string, QuantisedType> types;
  for (const NamedTensor& weight : weights)
    if (const auto name = name_of_codes(weight.name)) {
      const QuantisedMatrix matrix = find_quantised(weights, *name);
      types[*name] = {{matrix.codes.dtype(), matrix.codes.shape()},
                      {matrix.scales.dtype(), matrix.scales.shape()},
                      matrix.has_offsets(),
                      matrix.turned};
    }
  return types;
}

QuantisedWeights::QuantisedWeights(const Model& model, const TensorType& sample,
                                   const NamedTensors& weights, KernelChoices& choices)
    : matrices(quantised_types(weights)) {
  Graph graph = inference_graph(model, batch_of(sample, 1)).graph;
  const Program program(matrices.empty() ? std::move(graph) : quantise_weights(graph, matrices), {},
                        choices);
  parameters = Parameters(program.parameter_entries());
  load_weights(parameters, weights);
}

}  // namespace artel
