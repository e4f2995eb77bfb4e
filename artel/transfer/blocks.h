// The blocks of a network: the steps in which one speaks of "its last two blocks".
//
// A block is what a number in the names of the layers counts, such as layer4.1 of a ResNet,
// features.28 of a VGG or encoder.layer.5 of a BERT; layers outside of such a count are blocks of
// their own. Norms and what else multiplies no matrix belong to the block before them.
#pragma once

#include <string>
#include <vector>

#include "artel/nn/model.h"

namespace artel::transfer {

struct Block {
  std::string name;                   // of its first layers: "layer4.1"
  std::vector<std::string> prefixes;  // its parameters' names begin with one of these
  std::string output;      // its last value, as layer_outputs.h names it: "before layer4.1"
  int64_t parameters = 0;  // elements
};

// In the order in which they are computed. The last one is the head.
std::vector<Block> blocks_of(const Model& model, const TensorType& sample);

// Which blocks are trained, as people say it: "head", "all", "last N" (the head and the N blocks
// before it), or prefixes of layers, "layer3, layer4", which the head is always added to. Throws
// for what does not exist.
std::vector<bool> trained_blocks(const std::vector<Block>& blocks, const std::string& train);

}  // namespace artel::transfer
