// The axes of a mesh of workers: data x pipeline x tensor.
//
// Workers are numbered machine by machine. Workers that share layers are neighbours, followed by
// those of the same pipeline, then by the next copy of the network. So the largest exchanges stay
// on one machine if possible. Slow machines come last. A pure function of the sizes, and of the
// workers' machines and speeds.
#pragma once

#include <memory>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/cluster/mesh.h"

namespace artel {

struct MeshSize {
  int pipeline = 1, tensor = 1;  // workers along each axis

  int workers() const { return pipeline * tensor; }  // per copy of the network
  bool operator==(const MeshSize&) const = default;
};

struct MeshPlace {
  int data = 0, stage = 0, tensor = 0;

  // Index among the workers of a copy of the network.
  int part(const MeshSize& size) const { return stage * size.tensor + tensor; }
  bool operator==(const MeshPlace&) const = default;
};

// The machine and speed of each rank.
struct MeshWorkers {
  std::vector<int> hosts;           // numbers of their machines
  std::vector<double> speeds = {};  // relative to the fastest one; empty: all equal

  double speed(size_t rank) const { return speeds.empty() ? 1 : speeds[rank]; }
};

// The mesh coordinates of each rank.
std::vector<MeshPlace> mesh_places(const MeshWorkers& workers, const MeshSize& size);
// The speed of the slowest worker of each stage.
std::vector<double> stage_speeds(const MeshWorkers& workers, const MeshSize& size);

// This worker's coordinates and its neighbours along each axis, in the order of their coordinates.
struct MeshAxes {
  // Collective. The size divides the number of workers.
  MeshAxes(const Membership& all, const MeshSize& size, const std::vector<double>& speeds = {});

  MeshSize size;
  MeshPlace place;
  std::shared_ptr<comm::Group> once;  // workers of this copy of the network, in the order of parts
  std::shared_ptr<comm::Group> pipeline;  // those of them with the same part of each layer
  std::shared_ptr<comm::Group> tensor;    // those with the same stages; null for one worker
  Membership across;                      // workers with the same part; no group for one worker
};

}  // namespace artel
