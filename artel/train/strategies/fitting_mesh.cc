#include "artel/train/strategies/fitting_mesh.h"

#include <algorithm>

#include "artel/train/strategies/pipeline.h"
#include "artel/train/strategies/shared_options.h"
#include "artel/train/strategies/tensor.h"

namespace artel {

StrategyOptions fitting_mesh(const StrategyOptions& asked, int workers) {
  StrategyOptions options = asked;
  const int shards = shards_of(asked);
  int64_t& tensor = options.of<TensorOptions>().tensor;
  while (workers % tensor != 0 || shards % tensor != 0) --tensor;
  if (shards > 1) options.of<ShardsOptions>().shards = shards;
  const int64_t rest = workers / tensor;  // workers that can form pipelines
  int64_t& pipeline = options.of<PipelineOptions>().pipeline;
  if (pipeline == 1) return options;
  while (pipeline < rest && rest % pipeline != 0) ++pipeline;
  pipeline = std::min(pipeline, rest);
  return options;
}

}  // namespace artel
