#include "artel/graph/ops/catalogue.h"

#include <iterator>

namespace artel {

std::vector<OpDefinition> builtin_ops() {
  std::vector<OpDefinition> all;
  for (auto* subject :
       {elementwise_ops, matmul_ops, convolution_ops, pooling_ops, normalisation_ops, dropout_ops,
        softmax_ops, embedding_ops, attention_ops, rotary_ops, quantised_ops, recurrence_ops,
        shape_ops, reduction_ops, class_ops, limb_ops, shard_ops}) {
    std::vector<OpDefinition> ops = subject();
    std::move(ops.begin(), ops.end(), std::back_inserter(all));
  }
  return all;
}

}  // namespace artel
