// The built-in ops, one file per subject. To add a file: declare its function here and list it in
// catalogue.cc.
#pragma once

#include <vector>

#include "artel/graph/op.h"

namespace artel {

std::vector<OpDefinition> elementwise_ops();
std::vector<OpDefinition> matmul_ops();
std::vector<OpDefinition> convolution_ops();
std::vector<OpDefinition> pooling_ops();
std::vector<OpDefinition> normalisation_ops();
std::vector<OpDefinition> dropout_ops();
std::vector<OpDefinition> softmax_ops();
std::vector<OpDefinition> embedding_ops();
std::vector<OpDefinition> attention_ops();
std::vector<OpDefinition> rotary_ops();
std::vector<OpDefinition> quantised_ops();
std::vector<OpDefinition> recurrence_ops();
std::vector<OpDefinition> shape_ops();
std::vector<OpDefinition> reduction_ops();
std::vector<OpDefinition> class_ops();
std::vector<OpDefinition> limb_ops();
std::vector<OpDefinition> shard_ops();

std::vector<OpDefinition> builtin_ops();

}  // namespace artel
