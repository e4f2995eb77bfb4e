// The values of a graph while its layers are cut (split_layers.h): each is whole, in shards, or
// both, and is converted when somebody asks for the other.
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
  // Of a value that is in shards: how, and those of the part.
  const Split& split_at(ValueId id) const { return held_[id].split.value(); }
  const std::vector<Value>& pieces_of(ValueId id) const { return held_[id].pieces; }

  // The value as a whole: gathered, if need be.
  Value whole(ValueId id);
  // Its shards: a leaf is cut if it can be, anything else is sliced.
  const std::vector<Value>& pieces(ValueId id, const Split& split);
  // The whole value once for each shard.
  const std::vector<Value>& copies(ValueId id);
  // Whether a parameter or state can lie in memory shard by shard, or does so already.
  bool can_be_cut(ValueId id, const Split& split) const;

  void set_whole(ValueId id, Value value) { held_[id].whole = value; }
  void set_split(ValueId id, const Split& split, std::vector<Value> pieces);
  // Computes a node as a whole.
  void copy(const Node& node);
  // One node for each shard, with these inputs; `change` may adjust what is particular to a shard.
  // Returns the outputs of all, output by output.
  std::vector<std::vector<Value>> for_each_shard(
      const Node& node, const std::vector<std::vector<Value>>& inputs,
      const std::function<void(Attributes&, int shard)>& change = {});

  // Adds leaves that nobody reads, outputs and state updates, and returns the new graph.
  Graph finish();

 private:
  struct Held {
    Value whole;
    std::optional<Split> split;
    std::vector<Value> pieces;  // of the shards of the part
    std::vector<Value> copies;
    std::vector<std::pair<Split, std::vector<Value>>> slices;  // of the whole
  };

  void follow_observed(ValueId state);
  void add_update(const StateUpdate& update);

  const Graph& source_;
  ShardPart part_;
  Graph target_;
  std::vector<Held> held_;  // by value of the source
};

}  // namespace artel
