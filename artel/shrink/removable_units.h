// Structured pruning: finds and removes units of dense layers and channels of convolutions.
//
// A layer's units are removable if only dense layers and convolutions read its output, directly or
// through activations, batch norms, pooling, flattening, depthwise convolutions, and products with
// the output of another such layer. Removing a unit deletes a row of the layer's weight and the
// matching columns of its readers. Depthwise convolutions and the other factors of products, the
// layer's partners, lose the same units. In a residual network, the inner layers of each block are
// removable; in a gated feed-forward network, the hidden units.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "artel/nn/model.h"
#include "artel/nn/narrowing.h"
#include "artel/tensor/named_tensor.h"

namespace artel::shrink {

// A tensor that shrinks with the units. Each unit has `block` consecutive elements along `axis`.
struct UnitSlice {
  std::string tensor;
  int axis = 0;
  int64_t block = 1;
};

struct UnitsOfLayer {
  std::string layer;
  int64_t units = 0;
  std::string kept_because;        // the reason why no unit is removable; empty if units are
  std::vector<UnitSlice> made_by;  // the layer's weight and bias, and batch norms after it
  std::vector<UnitSlice> read_by;  // weights of the layers that read the units
  // Names of the tensors that rank the units: the weight and the scale of the batch norm, if any.
  std::string weight, scale;
  std::vector<std::string> partners = {};  // other layers that lose the same units
};

// All dense layers and convolutions that do not share their weights, in network order. Partners of
// an earlier layer have that as their `kept_because`.
std::vector<UnitsOfLayer> units_of(const Model& model, const TensorType& sample);

// The units that stay if the share `removed` with the least importance is removed, ascending. The
// importance of a unit is the norm of its weights times its batch norm scale, times the norms of
// its weights in the partners. Throws if no unit would stay.
std::vector<int64_t> most_important(const UnitsOfLayer& layer, const NamedTensors& weights,
                                    double removed);

// Removes all units except `kept` from `weights`.
void keep_units(const UnitsOfLayer& layer, const std::vector<int64_t>& kept, NamedTensors& weights);

}  // namespace artel::shrink
