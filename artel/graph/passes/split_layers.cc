#include "artel/graph/passes/split_layers.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/graph/op.h"
#include "artel/graph/ops.h"
#include "artel/graph/passes/split_values.h"

namespace artel {
namespace {

int64_t product(const Shape& shape, int first, int last) {
  int64_t result = 1;
  for (int axis = first; axis < last; ++axis) result *= shape[axis];
  return result;
}

class Splitter : SplitValues {
 public:
  using SplitValues::SplitValues;

  Graph run() {
    for (const Node& node : source().nodes()) {
      const Graph::Scope scope(target(), node.name);
      visit(node);
    }
    return finish();
  }

 private:
  void visit(const Node& node) {
    if (node.op->name == "attention") check_heads(node);
    const auto known = rules().find(node.op->name);
    const Rule rule = known != rules().end() ? known->second
                      : node.op->elementwise ? &Splitter::elementwise
                                             : nullptr;
    if (!rule || !(this->*rule)(node)) copy(node);
  }

  // How ops that are not element-wise are cut. A rule returns whether it has done so; otherwise the
  // op stays whole.
  using Rule = bool (Splitter::*)(const Node&);
  static const std::map<std::string_view, Rule>& rules() {
    static const std::map<std::string_view, Rule> all = {
        {"dense", &Splitter::dense},
        {"conv2d", &Splitter::convolution},
        {"embedding", &Splitter::embedding},
        {"attention", &Splitter::attention},
        {"rotary", &Splitter::rotary},
        {"cross_entropy", &Splitter::cross_entropy},
        {"count_top", &Splitter::count_top},
        {"dropout", &Splitter::dropout},
        {"reshape", &Splitter::reshaped},
        {"transpose", &Splitter::transposed},
        {"slice", &Splitter::beside_axis},
        {"concat", &Splitter::beside_axis},
        {"batch_norm", &Splitter::batch_norm},
        {"batch_norm_inference", &Splitter::batch_norm},
        {"max_pool", &Splitter::pooled},
        {"average_pool", &Splitter::pooled},
        {"adaptive_max_pool", &Splitter::pooled},
        {"adaptive_average_pool", &Splitter::pooled},
        {"reduce_sum", &Splitter::reduced},
        {"reduce_mean", &Splitter::reduced},
        {"reduce_max", &Splitter::reduced},
        {"reduce_min", &Splitter::reduced},
        {"layer_norm", &Splitter::rows},
        {"rms_norm", &Splitter::rows},
        {"softmax", &Splitter::rows},
        {"log_softmax", &Splitter::rows},
    };
    return all;
  }

  bool is_parameter(ValueId id) const { return source().value(id).kind == ValueKind::parameter; }

  // True if a layer with this many columns is cut into shards of these weights.
  bool worthwhile(const Node& node, int64_t columns, const Split& weights) const {
    return columns >= kLeastColumns * part().shards && is_parameter(node.inputs[1]) &&
           can_be_cut(node.inputs[1], weights);
  }

  // A layer of the whole input, by columns. `out` and `weights` are the axes that are cut.
  bool by_columns(const Node& node, const Split& out, const Split& weights) {
    if (!worthwhile(node, shape(node.outputs[0])[out.axis], weights)) return false;
    std::vector<std::vector<Value>> inputs = {copies(node.inputs[0]),
                                              pieces(node.inputs[1], weights)};
    if (node.inputs.size() > 2) inputs.push_back(pieces(node.inputs[2], split(0, out.blocks)));
    set_split(node.outputs[0], out, for_each_shard(node, inputs)[0]);
    return true;
  }

  // A layer of an input that is cut as `weights` are, by rows: the sum over shards.
  bool by_rows(const Node& node, const Split& weights, const Shape& bias) {
    if (!can_be_cut(node.inputs[1], weights)) return false;
    Node product = node;
    product.inputs.resize(2);
    const std::vector<Value> partials =
        for_each_shard(product, {pieces_of(node.inputs[0]), pieces(node.inputs[1], weights)})[0];
    Value y = shard_sum(partials, part());
    if (node.inputs.size() > 2) y = add(y, artel::reshape(whole(node.inputs[2]), bias));
    set_whole(node.outputs[0], y);
    return true;
  }

  bool dense(const Node& node) {
    const int last = shape(node.inputs[0]).rank() - 1;
    const int out = node.attributes.flag("in_out") ? 1 : 0;
    if (is_split(node.inputs[0], split(last)))
      return by_rows(node, split(1 - out), {shape(node.outputs[0]).back()});
    const int blocks = blocks_of(node.outputs[0]);
    return by_columns(node, split(last, blocks), split(out, blocks));
  }

  bool convolution(const Node& node) {
    if (node.attributes.integer("groups") != 1) return false;
    if (is_split(node.inputs[0], split(1)))
      return by_rows(node, split(1), {1, shape(node.outputs[0])[1], 1, 1});
    return by_columns(node, split(1), split(0));
  }

  // Queries, keys and values side by side are cut each by itself.
  int blocks_of(ValueId value) const {
    for (const Node& node : source().nodes())
      if (node.op->name == "attention" && node.attributes.flag("packed") && node.inputs[0] == value)
        return 3;
    return 1;
  }

  bool embedding(const Node& node) {
    const Shape& table = shape(node.inputs[1]);
    const Split rows = split(0);
    if (table[0] < kLeastRows * part().shards || !is_parameter(node.inputs[1]) ||
        !can_be_cut(node.inputs[1], rows))
      return false;
    const auto outputs = for_each_shard(
        node, {copies(node.inputs[0]), pieces(node.inputs[1], rows)},
        [&](Attributes& attributes, int shard) {
          attributes.set("first_row", ranges_of(table, rows)[static_cast<size_t>(shard)].begin);
          attributes.set("all_rows", table[0]);
        });
    set_whole(node.outputs[0], shard_sum(outputs[0], part()));
    return true;
  }

  void check_heads(const Node& node) const {
    const int64_t heads = node.attributes.integer("heads");
    if (heads % part().shards == 0) return;
    std::vector<std::string> divisors;
    for (int64_t i = 1; i <= heads; ++i)
      if (heads % i == 0) divisors.push_back(std::to_string(i));
    fail(ErrorKind::invalid_argument,
         "[layer '{}'] attention: got {} heads for cluster.shards = {}, expected a multiple of it; "
         "try cluster.shards = {}",
         node.name, heads, part().shards, join(divisors, " or "));
  }

  bool attention(const Node& node) {
    const bool packed = node.attributes.flag("packed");
    const size_t count = packed ? 1 : 3;
    for (size_t i = 0; i < count; ++i)
      if (!is_split(node.inputs[i], split(2, packed ? 3 : 1))) return false;
    std::vector<std::vector<Value>> inputs;
    for (size_t i = 0; i < node.inputs.size(); ++i)
      inputs.push_back(i < count ? pieces_of(node.inputs[i]) : copies(node.inputs[i]));
    const int64_t all = node.attributes.integer("heads"), heads = all / part().shards;
    const auto outputs = for_each_shard(node, inputs, [&](Attributes& attributes, int shard) {
      attributes.set("heads", heads);
      attributes.set("first_head", shard * heads);
      attributes.set("all_heads", all);
    });
    set_split(node.outputs[0], split(2), outputs[0]);
    set_split(node.outputs[1], split(1), outputs[1]);
    return true;
  }

  bool rotary(const Node& node) {
    const int64_t heads = node.attributes.integer("heads");
    if (!is_split(node.inputs[0], split(2)) || heads % part().shards != 0) return false;
    std::vector<std::vector<Value>> inputs = {pieces_of(node.inputs[0])};
    for (size_t i = 1; i < node.inputs.size(); ++i) inputs.push_back(copies(node.inputs[i]));
    const auto outputs = for_each_shard(node, inputs, [&](Attributes& attributes, int) {
      attributes.set("heads", heads / part().shards);
    });
    set_split(node.outputs[0], split(2), outputs[0]);
    return true;
  }

  // Scores whose classes are cut, with labels. Returns the number of classes, or 0.
  int64_t split_classes(const Node& node) const {
    const Shape& scores = shape(node.inputs[0]);
    const bool labels =
        source().type(node.inputs[1]).dtype == DType::i32 && node.inputs.size() == 2;
    return labels && is_split(node.inputs[0], split(scores.rank() - 1)) ? scores.back() : 0;
  }

  bool cross_entropy(const Node& node) {
    const int64_t classes = split_classes(node);
    if (classes == 0 || node.attributes.number("label_smoothing") != 0) return false;
    const WeightedMean loss = shard_cross_entropy(pieces_of(node.inputs[0]), whole(node.inputs[1]),
                                                  classes, node.attributes.integer("ignore_index"),
                                                  node.attributes.flag("over_rows"), part());
    set_whole(node.outputs[0], loss.weighted);
    set_whole(node.outputs[2], loss.weight);
    return true;
  }

  bool count_top(const Node& node) {
    const int64_t classes = split_classes(node);
    if (classes == 0) return false;
    set_whole(node.outputs[0], shard_count_top(pieces_of(node.inputs[0]), whole(node.inputs[1]),
                                               classes, node.attributes.integer("k"),
                                               node.attributes.integer("ignore_index"), part()));
    return true;
  }

  // The axis of the output along which all inputs that are cut are cut.
  std::optional<Split> common_split(const Node& node) const {
    std::optional<Split> result;
    const int rank = shape(node.outputs[0]).rank();
    for (const ValueId id : node.inputs) {
      if (!is_split(id)) continue;
      Split own = split_at(id);
      own.axis += rank - shape(id).rank();
      if (result && *result != own) return {};
      result = own;
    }
    return result;
  }

  bool elementwise(const Node& node) {
    const std::optional<Split> out = common_split(node);
    if (!out) return false;
    const int rank = shape(node.outputs[0]).rank();
    const auto own_axis = [&](ValueId id) { return out->axis - rank + shape(id).rank(); };
    const auto is_broadcast = [&](ValueId id) {
      return own_axis(id) < 0 || shape(id)[own_axis(id)] == 1;
    };
    // If an operand of the same size is not split, do not split the result.
    for (const ValueId id : node.inputs)
      if (!is_split(id) && !is_broadcast(id) && source().value(id).kind == ValueKind::computed)
        return false;
    std::vector<std::vector<Value>> inputs;
    for (const ValueId id : node.inputs)
      inputs.push_back(is_split(id)       ? pieces_of(id)
                       : is_broadcast(id) ? copies(id)
                                          : pieces(id, split(own_axis(id), out->blocks)));
    set_split(node.outputs[0], *out, for_each_shard(node, inputs)[0]);
    return true;
  }

  // Masks are those of the unsplit value: random numbers are keyed by its element indices.
  bool dropout(const Node& node) {
    if (!is_split(node.inputs[0])) return false;
    const Split own = split_at(node.inputs[0]);
    if (own.blocks > 1) return false;
    const Shape& x = shape(node.inputs[0]);
    const int64_t after = product(x, own.axis + 1, x.rank());
    const auto outputs =
        for_each_shard(node, {pieces_of(node.inputs[0])}, [&](Attributes& attributes, int shard) {
          const SplitRange range = ranges_of(x, own)[static_cast<size_t>(shard)];
          attributes.set("row", range.extent * after);
          attributes.set("all_of_row", x[own.axis] * after);
          attributes.set("first_of_row", range.begin * after);
        });
    set_split(node.outputs[0], own, outputs[0]);
    return true;
  }

  // The split of `to` whose shards contain the same elements as the shards of `from`, if any.
  std::optional<Split> reshaped_split(const Shape& from, const Split& own, const Shape& to) const {
    const int64_t before = product(from, 0, own.axis);
    const int64_t after = product(from, own.axis + 1, from.rank());
    for (int axis = 0; axis < to.rank(); ++axis) {
      if (product(to, 0, axis) != before) continue;
      const Split candidate = {axis, own.blocks, own.shards};
      const int64_t inner = product(to, axis + 1, to.rank());
      if (to[axis] % own.blocks != 0 || inner == 0) continue;
      const std::vector<SplitRange> old_ranges = ranges_of(from, own);
      const std::vector<SplitRange> new_ranges = ranges_of(to, candidate);
      if (std::equal(old_ranges.begin(), old_ranges.end(), new_ranges.begin(),
                     [&](const SplitRange& a, const SplitRange& b) {
                       return a.begin * after == b.begin * inner &&
                              a.extent * after == b.extent * inner;
                     }))
        return candidate;
    }
    return {};
  }

  bool reshaped(const Node& node) {
    if (!is_split(node.inputs[0])) return false;
    const Shape& to = shape(node.outputs[0]);
    const std::optional<Split> out =
        reshaped_split(shape(node.inputs[0]), split_at(node.inputs[0]), to);
    if (!out) return false;
    const auto outputs =
        for_each_shard(node, {pieces_of(node.inputs[0])}, [&](Attributes& attributes, int shard) {
          attributes.set("shape", shard_shape(to, *out, shard).extents());
        });
    set_split(node.outputs[0], *out, outputs[0]);
    return true;
  }

  bool transposed(const Node& node) {
    if (!is_split(node.inputs[0])) return false;
    Split out = split_at(node.inputs[0]);
    const std::vector<int64_t>& order = node.attributes.integers("permutation");
    out.axis = static_cast<int>(std::find(order.begin(), order.end(), out.axis) - order.begin());
    set_split(node.outputs[0], out, for_each_shard(node, {pieces_of(node.inputs[0])})[0]);
    return true;
  }

  // An op along another axis than the one that is cut, which all inputs must be.
  bool beside_axis(const Node& node) {
    const std::optional<Split> out = common_split(node);
    const int rank = shape(node.outputs[0]).rank();
    const int64_t axis = node.attributes.integer("axis");
    if (!out || out->axis == (axis < 0 ? axis + rank : axis)) return false;
    std::vector<std::vector<Value>> inputs;
    for (const ValueId id : node.inputs) {
      if (!is_split(id)) return false;
      inputs.push_back(pieces_of(id));
    }
    set_split(node.outputs[0], *out, for_each_shard(node, inputs)[0]);
    return true;
  }

  bool batch_norm(const Node& node) {
    const Split own = is_split(node.inputs[0]) ? split_at(node.inputs[0]) : Split();
    if (!is_split(node.inputs[0]) || own.axis != 1) return false;
    std::vector<std::vector<Value>> inputs = {pieces_of(node.inputs[0])};
    for (size_t i = 1; i < node.inputs.size(); ++i)
      inputs.push_back(pieces(node.inputs[i], split(0, own.blocks)));
    const auto outputs = for_each_shard(node, inputs);
    set_split(node.outputs[0], own, outputs[0]);
    for (size_t i = 1; i < outputs.size(); ++i)
      set_split(node.outputs[i], split(0, own.blocks), outputs[i]);
    return true;
  }

  bool pooled(const Node& node) {
    if (!is_split(node.inputs[0])) return false;
    const Split own = split_at(node.inputs[0]);
    if (own.axis > 1) return false;
    const auto outputs = for_each_shard(node, {pieces_of(node.inputs[0])});
    for (size_t i = 0; i < outputs.size(); ++i) set_split(node.outputs[i], own, outputs[i]);
    return true;
  }

  bool reduced(const Node& node) {
    if (!is_split(node.inputs[0])) return false;
    Split out = split_at(node.inputs[0]);
    const int axis = out.axis, rank = shape(node.inputs[0]).rank();
    const std::vector<int64_t>& axes = node.attributes.integers("axes");
    if (axes.empty()) return false;
    for (int64_t each : axes) {
      each = each < 0 ? each + rank : each;
      if (each == axis) return false;
      if (each < axis && !node.attributes.flag("keep")) --out.axis;
    }
    set_split(node.outputs[0], out, for_each_shard(node, {pieces_of(node.inputs[0])})[0]);
    return true;
  }

  // Ops on the last axis, of a value that is cut along another.
  bool rows(const Node& node) {
    if (!is_split(node.inputs[0])) return false;
    const Split own = split_at(node.inputs[0]);
    if (own.axis + 1 == shape(node.inputs[0]).rank()) return false;
    std::vector<std::vector<Value>> inputs = {pieces_of(node.inputs[0])};
    for (size_t i = 1; i < node.inputs.size(); ++i) {
      if (is_split(node.inputs[i])) return false;
      inputs.push_back(copies(node.inputs[i]));
    }
    const auto outputs = for_each_shard(node, inputs);
    for (size_t i = 0; i < outputs.size(); ++i) set_split(node.outputs[i], own, outputs[i]);
    return true;
  }
};

}  // namespace

Graph split_layers(const Graph& graph, const ShardPart& part) {
  return Splitter(graph, part).run();
}

std::vector<std::string> whole_layers(const Graph& graph) {
  static const std::set<std::string_view> ops = {"dense", "conv2d", "embedding", "conv_transpose2d",
                                                 "lstm",  "gru"};
  std::vector<std::string> names;
  for (const Node& node : graph.nodes()) {
    if (node.direction != Direction::forward || !ops.contains(node.op->name)) continue;
    const ValueData& weight = graph.value(node.inputs[1]);
    const std::string name = node.name.empty() ? node.op->name : node.name;
    if (weight.kind == ValueKind::parameter && !weight.shard_of &&
        std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  }
  return names;
}

}  // namespace artel
