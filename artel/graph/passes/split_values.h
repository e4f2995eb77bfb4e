// The values of a graph during sharding (split_layers.h). Each is whole, sharded, or both, and is
// converted on demand.
#pragma once

#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "artel/graph/ops/shards.h"

namespace artel {

class SplitValues {
 public:
  SplitValues(const Graph& source, const ShardPart& part);

  const Graph& source() const { return source_; }
  Graph& target() { return target_; }
  const ShardPart& part() const { return part_; }
  const Shape& shape(ValueId id) const { return source_.type(id).shape; }
  Split split(int axis, int blocks = 1) const { return {axis, blocks, part_.shards}; }

  bool is_split(ValueId id) const { return held_[id].split.has_value(); }
  bool is_split(ValueId id, const Split& split) const { return held_[id].split == split; }
  // The split and the local shards of a sharded value.
  const Split& split_at(ValueId id) const { return held_[id].split.value(); }
  const std::vector<Value>& pieces_of(ValueId id) const { return held_[id].pieces; }

  // The whole value, gathered if needed.
  Value whole(ValueId id);
  // The shards of a value. Cuts a leaf if possible; slices other values.
  const std::vector<Value>& pieces(ValueId id, const Split& split);
  // One copy of the whole value per shard.
  const std::vector<Value>& copies(ValueId id);
  // True if a parameter or state can be stored by shard, or already is.
  bool can_be_cut(ValueId id, const Split& split) const;

  void set_whole(ValueId id, Value value) { held_[id].whole = value; }
  void set_split(ValueId id, const Split& split, std::vector<Value> pieces);
  // Copies a node unsharded.
  void copy(const Node& node);
  // Adds one node per shard with these inputs; `change` may adjust attributes per shard. Returns
  // the outputs, output by output.
  std::vector<std::vector<Value>> for_each_shard(
      const Node& node, const std::vector<std::vector<Value>>& inputs,
      const std::function<void(Attributes&, int shard)>& change = {});

  // Adds unused leaves, outputs, and state updates, and returns the new graph.
  Graph finish();

 private:
  struct Held {
    Value whole;
    std::optional<Split> split;
    std::vector<Value> pieces;  // local shards
    std::vector<Value> copies;
    std::vector<std::pair<Split, std::vector<Value>>> slices;  // slices of the whole value
  };

  void follow_observed(ValueId state);
  void add_update(const StateUpdate& update);

  const Graph& source_;
  ShardPart part_;
  Graph target_;
  std::vector<Held> held_;  // by value of the source
};

}  // namespace artel
