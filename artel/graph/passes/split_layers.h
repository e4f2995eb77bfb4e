// Cuts layers into shards, so that workers of a tensor group can share them (P2: "cut along the
// layers"; Shoeybi et al., 2019).
//
//   dense, conv2d     of a whole value by columns (output channels), each shard with its columns of
//                     the weights; of a value that is cut that way by rows, and summed over shards
//   attention         by heads
//   embedding         by rows of the table, summed over shards
//   cross entropy     by classes
//   element-wise ops, dropout, batch norm, pooling and changes of shape follow their input
//
// Everything else is computed as a whole, and so are layers too small to be worth it. So a
// transformer's block has two sums in the forward pass and two in the backward pass.
//
// The result depends only on the graph and the number of shards. A part of it has the nodes of some
// of the shards, and all that is whole.
#pragma once

#include <string>
#include <vector>

#include "artel/graph/ops/shards.h"

namespace artel {

// A layer that is cut has this many columns or more for each shard.
inline constexpr int64_t kLeastColumns = 16;
// And a table, this many rows.
inline constexpr int64_t kLeastRows = 128;

// Takes a graph as built by layers. Throws for attention whose heads the shards do not divide.
Graph split_layers(const Graph& graph, const ShardPart& part);

// The layers of a split graph whose weights are not cut.
std::vector<std::string> whole_layers(const Graph& graph);

}  // namespace artel
