// Workers in a mesh (train/mesh_axes.h): those along its pipeline axis have different stages of the
// network, those along its tensor axis different shards of the layers, and those along its data
// axis, who have the same part, share the lanes and add up their gradients. They may also share the
// optimizer's memory, gradients and weights of that part (cluster.sharding). The bits are those of
// one worker with as many lanes and shards.
//
//   artel::TrainerOptions options = {.lanes = 16};
//   options.strategy_options = {artel::MeshOptions{.mesh = "auto"}};
#pragma once

#include "artel/train/strategies/registry.h"

namespace artel {

struct MeshSize;

struct MeshOptions {
  std::string mesh = "given";
  bool chosen = false;  // the options of the axes are what `auto` has found

  void visit(KeyVisitor& field);
};

// That these options ask for.
MeshSize mesh_size(const StrategyOptions& options);

StrategyKind mesh_kind();

}  // namespace artel
