// The blocks of a network, the unit of freezing and fine-tuning.
//
// A block is one repetition in the numbered layer names, such as layer4.1 of a ResNet, features.28
// of a VGG, or encoder.layer.5 of a BERT. A layer outside such a numbering is its own block. Norms
// and other layers without a matrix product belong to the preceding block.
#pragma once

#include <string>
#include <vector>

#include "artel/nn/model.h"

namespace artel::transfer {

struct Block {
  std::string name;                   // "layer4.1"
  std::vector<std::string> prefixes;  // prefixes of its parameter names
  std::string output;      // its last value, named as in layer_outputs.h: "before layer4.1"
  int64_t parameters = 0;  // elements
};

// The blocks in order of computation. The last one is the head.
std::vector<Block> blocks_of(const Model& model, const TensorType& sample);

// Selects the trained blocks. `train` is "head", "all", "last N" (the head and the N blocks before
// it), or a list of prefixes such as "layer3, layer4"; the head is always included. Throws for
// unknown prefixes.
std::vector<bool> trained_blocks(const std::vector<Block>& blocks, const std::string& train);

}  // namespace artel::transfer
