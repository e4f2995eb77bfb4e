// The axes of a mesh of workers: data x pipeline x tensor.
//
// Workers are counted machine by machine. Those that share layers are neighbours, then come the
// workers of the same pipeline, then the next copy of the network: so what exchanges most lies on
// one machine, if it fits there. A pure function of the sizes and of who is on which machine.
#pragma once

#include <memory>
#include <vector>

#include "artel/cluster/membership.h"
#include "artel/cluster/mesh.h"

namespace artel {

struct MeshSize {
  int pipeline = 1, tensor = 1;  // workers along each axis

  int workers() const { return pipeline * tensor; }  // that have the network once
  bool operator==(const MeshSize&) const = default;
};

struct MeshPlace {
  int data = 0, stage = 0, tensor = 0;

  // Among those that have the network once.
  int part(const MeshSize& size) const { return stage * size.tensor + tensor; }
  bool operator==(const MeshPlace&) const = default;
};

// Of each rank; `hosts` are the numbers of their machines.
std::vector<MeshPlace> mesh_places(const std::vector<int>& hosts, const MeshSize& size);

// This worker's place and its neighbours along each axis, in the order of their places.
struct MeshAxes {
  // A collective call; the size divides the workers.
  MeshAxes(const Membership& all, const MeshSize& size);

  MeshSize size;
  MeshPlace place;
  std::shared_ptr<comm::Group> once;      // all who have the network once, in the order of parts
  std::shared_ptr<comm::Group> pipeline;  // of those, who have the same part of each layer
  std::shared_ptr<comm::Group> tensor;    // and who have the same stages; null: nobody else
  Membership across;                      // who has the same part; no group: nobody else
};

}  // namespace artel
