// What connects layers that are cut into shards with those that are whole. The gradient of each op
// is made of the others.
//
// A graph may have all shards, or those of one worker of several: sums and gathered values then
// need the others (exec/shard_exchange.h). The bits do not depend on it: sums over shards follow
// the tree of comm/lane_tree.h.
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

// The shards of a graph, out of all.
struct ShardPart {
  int shards = 1;
  int first = 0, last = 1;

  static ShardPart all(int shards) { return {shards, 0, shards}; }
  bool whole() const { return first == 0 && last == shards; }
  int count() const { return last - first; }
  bool operator==(const ShardPart&) const = default;
};

// The value once for each shard here: what shards compute of it separately. Its gradient is the sum
// over all shards.
std::vector<Value> shard_copies(Value x, const ShardPart& part);
// The sum over all shards; `partials` are those of the shards here.
Value shard_sum(const std::vector<Value>& partials, const ShardPart& part);
// The shards here of a value that is whole.
std::vector<Value> shard_slices(Value x, const Split& split, const ShardPart& part);
// The whole of which `pieces` are the shards here; its extent along the axis is `extent`.
Value shard_gather(const std::vector<Value>& pieces, const Split& split, int64_t extent,
                   const ShardPart& part);

// Cross entropy for labels i32 [rows] and `count_top`, of scores [rows, classes] whose shards along
// the classes are `pieces`. The loss is the mean over all rows (`over_rows`), as
// weighted_cross_entropy has it, or over those that count.
WeightedMean shard_cross_entropy(const std::vector<Value>& pieces, Value labels, int64_t classes,
                                 int64_t ignore_index, bool over_rows, const ShardPart& part);
Value shard_count_top(const std::vector<Value>& pieces, Value labels, int64_t classes, int64_t k,
                      int64_t ignore_index, const ShardPart& part);

// Whether kernels of this op exchange with the workers that have the other shards. All of them run
// these in the same order, so they are never recomputed.
bool exchanges_shards(std::string_view op);

// Of a node of one of these ops.
ShardPart part_of(const Attributes& attributes);
Split split_of(const Attributes& attributes);

}  // namespace artel
