// Ops that connect sharded layers with whole ones. The gradient of each op is built from the
// other ops in this file.
//
// A graph has all shards, or those of one worker of a tensor group; sums and gathered values then
// need an exchange with the other workers (exec/shard_exchange.h). The bits are the same, because
// sums over shards follow the tree of comm/collectives/lane_tree.h.
//
//   // The sum of two shards' results, both of which are here.
//   const artel::nn::Layer halves("halves", [](artel::nn::Build&, artel::Value x) {
//     const auto part = artel::ShardPart::all(2);
//     std::vector<artel::Value> copies = artel::shard_copies(x, part);
//     return artel::shard_sum({artel::relu(copies[0]), artel::unary("tanh", copies[1])}, part);
//   });
#pragma once

#include <string_view>
#include <vector>

#include "artel/graph/graph.h"
#include "artel/graph/ops.h"

namespace artel {

// The range of shards in a graph.
struct ShardPart {
  int shards = 1;
  int first = 0, last = 1;

  static ShardPart all(int shards) { return {shards, 0, shards}; }
  bool whole() const { return first == 0 && last == shards; }
  int count() const { return last - first; }
  bool operator==(const ShardPart&) const = default;
};

// One copy of the value per local shard. Its gradient is the sum over all shards.
std::vector<Value> shard_copies(Value x, const ShardPart& part);
// The sum over all shards. `partials` are those of the local shards.
Value shard_sum(const std::vector<Value>& partials, const ShardPart& part);
// The local shards of a whole value.
std::vector<Value> shard_slices(Value x, const Split& split, const ShardPart& part);
// The whole value whose local shards are `pieces`. Its extent along the axis is `extent`.
Value shard_gather(const std::vector<Value>& pieces, const Split& split, int64_t extent,
                   const ShardPart& part);

// Cross entropy and `count_top` for labels i32 [rows] and scores [rows, classes], whose shards
// along the classes are `pieces`. Divides the loss by the number of rows if `over_rows`, as
// weighted_cross_entropy does, otherwise by the number of rows that are not ignored.
WeightedMean shard_cross_entropy(const std::vector<Value>& pieces, Value labels, int64_t classes,
                                 int64_t ignore_index, bool over_rows, const ShardPart& part);
Value shard_count_top(const std::vector<Value>& pieces, Value labels, int64_t classes, int64_t k,
                      int64_t ignore_index, const ShardPart& part);

// True if kernels of this op exchange with the workers that have the other shards. All workers run
// them in the same order, so they are never recomputed.
bool exchanges_shards(std::string_view op);

// The shards of a node of one of these ops.
ShardPart part_of(const Attributes& attributes);
Split split_of(const Attributes& attributes);

}  // namespace artel
