// Workers in pipelines: each has a part of the network, and lanes pass from one to the next. With
// more workers than a pipeline has, several pipelines share the lanes, and each stage adds up its
// gradients over them. The bits are those of one worker.
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

struct PipelineOptions {
  int64_t pipeline = 1;  // workers of a pipeline
  std::string schedule = "auto";
  std::string cuts = "estimated";

  void visit(KeyVisitor& field);
};

StrategyKind pipeline_kind();

}  // namespace artel
