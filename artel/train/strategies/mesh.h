// Workers in a mesh (train/parts/mesh_axes.h). Along the pipeline axis, workers have different
// stages of the network; along the tensor axis, different shards of the layers. Along the data
// axis, workers have the same part, share the lanes, and add up their gradients. They may also
// share the optimizer state, gradients, and weights of that part (cluster.sharding). The bits are
// those of one worker with the same numbers of lanes and shards.
//
//   artel::TrainerOptions options = {.lanes = 16};
//   options.strategy_options = {artel::MeshOptions{.mesh = "auto"}};
#pragma once

#include "artel/comm/collectives/calibration.h"
#include "artel/train/strategies/registry.h"

namespace artel {

struct MeshSize;

struct MeshOptions {
  std::string mesh = "given";
  bool chosen = false;  // `auto` has set the axes
  // Measured speeds by rank on which the choice was based; empty if all are equal.
  std::vector<double> speeds = {};
  comm::Calibration links = {};  // measured links on which the choice was based

  void visit(KeyVisitor& field);
};

// The size selected by these options.
MeshSize mesh_size(const StrategyOptions& options);

StrategyKind mesh_kind();

}  // namespace artel
