// The weights that a network begins with.
#pragma once

#include "artel/nn/model.h"
#include "artel/predict/batches.h"
#include "artel/tensor/named_tensor.h"

namespace artel::tests {

inline NamedTensors initial_weights(const Model& model, const TensorType& sample, uint64_t seed) {
  const ModelGraph built = inference_graph(model, batch_of(sample, 1));
  NamedTensors all;
  for (const ValueKind kind : {ValueKind::parameter, ValueKind::state})
    for (const ValueId id : built.graph.of_kind(kind)) {
      const ValueData& value = built.graph.value(id);
      all.push_back({value.name, nn::initial_value(seed, value.name, value.type.shape,
                                                   built.initialisers.at(value.name))});
    }
  return all;
}

}  // namespace artel::tests
