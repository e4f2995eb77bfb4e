#include "artel/shrink/removable_units.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <numeric>
#include <set>

#include "artel/base/error.h"
#include "artel/graph/op.h"
#include "artel/nn/graph_copier.h"
#include "artel/predict/batches.h"

namespace artel::shrink {
namespace {

constexpr std::string_view kWeight = ".weight";

// A value that contains the units of a layer, while they are followed through the graph.
struct Stream {
  ValueId value = -1;
  int axis = 1;       // the axis of the units
  int64_t block = 1;  // elements of the axis per unit
};

class Tracer {
 public:
  explicit Tracer(const nn::BuiltNetwork& built)
      : graph_(built.graph), prediction_(built.prediction) {
    for (const Node& node : graph_.nodes()) {
      for (const ValueId input : node.inputs) readers_[input].push_back(&node);
      for (const ValueId output : node.outputs) makers_[output] = &node;
    }
  }

  bool has_own_weight(const Node& node) const {
    const ValueData& weight = graph_.value(node.inputs[1]);
    return weight.kind == ValueKind::parameter && weight.name.ends_with(kWeight);
  }

  UnitsOfLayer trace(const Node& node) const {
    const std::string& weight = graph_.value(node.inputs[1]).name;
    UnitsOfLayer layer = {
        layer_of(node), graph_.type(node.inputs[1]).shape[unit_axis(node)], {}, {}, {}, weight, {}};
    layer.kept_because = make(node, layer);
    if (is_conv(node) && node.attributes.integer("groups") > 1)
      layer.kept_because = "it has groups";
    const ValueId y = node.outputs[0];
    const int axis = is_conv(node) ? 1 : graph_.type(y).shape.rank() - 1;
    if (layer.kept_because.empty()) layer.kept_because = follow({y, axis}, layer);
    if (layer.kept_because.empty() && layer.read_by.empty())
      layer.kept_because = "nothing reads it";
    return layer;
  }

 private:
  static bool is_conv(const Node& node) { return node.op->name == "conv2d"; }
  static bool is_in_out(const Node& node) {
    return !is_conv(node) && node.attributes.flag("in_out");
  }
  // The axis of the weight that has the layer's own units.
  static int unit_axis(const Node& node) { return is_in_out(node) ? 1 : 0; }
  std::string layer_of(const Node& node) const {
    const std::string& weight = graph_.value(node.inputs[1]).name;
    return weight.substr(0, weight.size() - kWeight.size());
  }

  // Adds the slices of the layer's weight and bias. Returns the reason why they cannot shrink, or
  // "".
  std::string make(const Node& node, UnitsOfLayer& layer) const {
    if (!has_own_weight(node) || !take(node.inputs[1], {{}, unit_axis(node)}, layer.made_by))
      return "its weight is shared";
    if (node.inputs.size() > 2 && !take(node.inputs[2], {{}, 0}, layer.made_by))
      return "its bias is shared";
    return "";
  }

  // Adds a slice if the value is a parameter or state with a single reader.
  bool take(ValueId id, UnitSlice slice, std::vector<UnitSlice>& slices) const {
    const ValueData& value = graph_.value(id);
    if (value.kind != ValueKind::parameter && value.kind != ValueKind::state) return false;
    if (readers_.at(id).size() > 1) return false;
    slice.tensor = value.name;
    slices.push_back(std::move(slice));
    return true;
  }

  // Follows the units to their readers. Returns the reason why they cannot be removed, or "".
  std::string follow(const Stream& stream, UnitsOfLayer& layer) const {
    if (stream.value == prediction_) return "it is the output";
    const auto readers = readers_.find(stream.value);
    if (readers == readers_.end()) return "";
    for (const Node* const node : readers->second)
      if (const std::string why = pass(*node, stream, layer); !why.empty()) return why;
    return "";
  }

  std::string pass(const Node& node, const Stream& stream, UnitsOfLayer& layer) const {
    const std::string& op = node.op->name;
    const auto refuse = [&] { return fmt::format("{} in '{}' reads it", op, node.name); };
    const Shape& shape = graph_.type(stream.value).shape;
    Stream next = {node.outputs[0], stream.axis, stream.block};
    if (op == "mul" && multiplies(node, stream, layer)) return follow(next, layer);
    if (node.inputs[0] != stream.value) return refuse();
    if (is_depthwise(node, stream))
      return add_partner(node, layer) ? follow(next, layer) : refuse();
    if (op == "conv2d" || op == "dense") return read(node, stream, layer) ? "" : refuse();
    static const std::set<std::string> pools = {"max_pool", "average_pool", "adaptive_average_pool",
                                                "adaptive_max_pool"};
    if (op == "batch_norm_inference") {
      if (stream.axis != 1 || !normalised(node, layer)) return refuse();
    } else if (op == "reshape") {
      const Shape& flat = graph_.type(next.value).shape;
      if (stream.axis != 1 || flat.rank() != 2 || flat[0] != shape[0]) return refuse();
      next.block *= flat[1] / shape[1];
    } else if (pools.contains(op)) {
      if (stream.axis != 1) return refuse();
    } else if (!node.op->elementwise || node.inputs.size() != 1) {
      return refuse();
    }
    return follow(next, layer);
  }

  // A convolution with one filter for each unit.
  bool is_depthwise(const Node& node, const Stream& stream) const {
    if (!is_conv(node) || stream.axis != 1 || stream.block != 1) return false;
    const Shape& weight = graph_.type(node.inputs[1]).shape;
    return weight[0] == node.attributes.integer("groups") && weight[1] == 1 && weight[0] > 1;
  }

  // Adds a layer that loses the same units.
  bool add_partner(const Node& node, UnitsOfLayer& layer) const {
    if (!make(node, layer).empty()) return false;
    layer.partners.push_back(layer_of(node));
    return true;
  }

  // True if the other factor comes from a dense layer with as many units, which becomes a partner.
  // Nothing else may read it on the way.
  bool multiplies(const Node& node, const Stream& stream, UnitsOfLayer& layer) const {
    if (node.inputs.size() != 2 || node.inputs[0] == node.inputs[1]) return false;
    ValueId other = node.inputs[node.inputs[0] == stream.value ? 1 : 0];
    if (graph_.type(other) != graph_.type(stream.value)) return false;
    while (other != prediction_ && readers_.at(other).size() == 1 && makers_.contains(other)) {
      const Node& maker = *makers_.at(other);
      if (maker.op->name == "dense") {
        const bool same_axis = stream.axis == graph_.type(other).shape.rank() - 1;
        return same_axis && stream.block == 1 && add_partner(maker, layer);
      }
      if (!maker.op->elementwise || maker.inputs.size() != 1) return false;
      other = maker.inputs[0];
    }
    return false;
  }

  bool normalised(const Node& node, UnitsOfLayer& layer) const {
    for (size_t i = 1; i < node.inputs.size(); ++i)
      if (!take(node.inputs[i], {}, layer.made_by)) return false;
    if (layer.scale.empty()) layer.scale = graph_.value(node.inputs[1]).name;
    return true;
  }

  bool read(const Node& node, const Stream& stream, UnitsOfLayer& layer) const {
    if (is_conv(node) && node.attributes.integer("groups") != 1) return false;
    if (!is_conv(node) && stream.axis != graph_.type(stream.value).shape.rank() - 1) return false;
    return take(node.inputs[1], {{}, is_in_out(node) ? 0 : 1, stream.block}, layer.read_by);
  }

  const Graph& graph_;
  const ValueId prediction_;
  std::map<ValueId, std::vector<const Node*>> readers_;
  std::map<ValueId, const Node*> makers_;
};

NamedTensor& find(NamedTensors& weights, const std::string& name) {
  const auto found = std::ranges::find(weights, name, &NamedTensor::name);
  require(found != weights.end(), ErrorKind::not_found, "the weights lack '{}'", name);
  return *found;
}

// Copies the elements of the kept units.
Tensor taken(const Tensor& from, const UnitSlice& slice, const std::vector<int64_t>& kept) {
  std::vector<int64_t> extents = from.shape().extents();
  const int64_t before = std::accumulate(extents.begin(), extents.begin() + slice.axis, int64_t{1},
                                         std::multiplies<>());
  const int64_t inner = std::accumulate(extents.begin() + slice.axis + 1, extents.end(),
                                        slice.block, std::multiplies<>());
  const int64_t units = extents[static_cast<size_t>(slice.axis)] / slice.block;
  extents[static_cast<size_t>(slice.axis)] = std::ssize(kept) * slice.block;
  Tensor to{Shape(std::move(extents))};
  const auto source = from.values<float>();
  const auto target = to.values<float>();
  for (int64_t i = 0; i < before; ++i)
    for (size_t k = 0; k < kept.size(); ++k)
      std::copy_n(source.data() + (i * units + kept[k]) * inner, inner,
                  target.data() + (i * std::ssize(kept) + static_cast<int64_t>(k)) * inner);
  return to;
}

const Tensor& tensor_of(const NamedTensors& weights, const std::string& name) {
  const Tensor* const tensor = find_tensor(weights, name);
  require(tensor != nullptr, ErrorKind::not_found, "the weights lack '{}'", name);
  return *tensor;
}

std::vector<double> importance_of(const UnitsOfLayer& layer, const NamedTensors& weights) {
  std::vector<double> importance(static_cast<size_t>(layer.units), 1.0);
  for (const UnitSlice& made : layer.made_by) {
    const Tensor& tensor = tensor_of(weights, made.tensor);
    if (made.tensor != layer.scale && !made.tensor.ends_with(kWeight)) continue;
    if (made.tensor != layer.scale && tensor.shape().rank() < 2) continue;  // another batch norm
    for (int64_t unit = 0; unit < layer.units; ++unit) {
      double squares = 0;
      const Tensor row = taken(tensor, made, {unit});
      for (const float value : row.values<float>()) squares += double{value} * value;
      importance[unit] *= std::sqrt(squares);
    }
  }
  return importance;
}

}  // namespace

std::vector<UnitsOfLayer> units_of(const Model& model, const TensorType& sample) {
  nn::BuiltNetwork built;
  nn::build_aside(model, batch_of(sample, 2), false, {}, built);
  const Tracer tracer(built);
  std::vector<UnitsOfLayer> layers;
  std::map<std::string, std::string> leaders;  // of partners
  for (const Node& node : built.graph.nodes()) {
    if ((node.op->name != "dense" && node.op->name != "conv2d") || !tracer.has_own_weight(node))
      continue;
    UnitsOfLayer layer = tracer.trace(node);
    if (const auto leader = leaders.find(layer.layer); leader != leaders.end())
      layer.kept_because = fmt::format("its units must match those of '{}'", leader->second);
    else if (layer.kept_because.empty())
      for (const std::string& partner : layer.partners) leaders[partner] = layer.layer;
    layers.push_back(std::move(layer));
  }
  return layers;
}

std::vector<int64_t> most_important(const UnitsOfLayer& layer, const NamedTensors& weights,
                                    double removed) {
  const auto gone = static_cast<int64_t>(removed * static_cast<double>(layer.units));
  require(
      gone < layer.units, ErrorKind::invalid_argument,
      "[layer '{}'] removing {} of its {} units leaves nothing; remove fewer, or leave the layer "
      "out with --keep",
      layer.layer, gone, layer.units);
  const std::vector<double> importance = importance_of(layer, weights);
  std::vector<int64_t> units(static_cast<size_t>(layer.units));
  std::iota(units.begin(), units.end(), 0);
  std::ranges::stable_sort(units,
                           [&](int64_t a, int64_t b) { return importance[a] > importance[b]; });
  units.resize(static_cast<size_t>(layer.units - gone));
  std::ranges::sort(units);
  return units;
}

void keep_units(const UnitsOfLayer& layer, const std::vector<int64_t>& kept,
                NamedTensors& weights) {
  for (const std::vector<UnitSlice>* slices : {&layer.made_by, &layer.read_by})
    for (const UnitSlice& slice : *slices) {
      NamedTensor& weight = find(weights, slice.tensor);
      weight.tensor = taken(weight.tensor, slice, kept);
    }
}

}  // namespace artel::shrink
