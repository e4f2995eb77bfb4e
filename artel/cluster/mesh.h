// A worker's coordinates in the mesh: its copy of the network, and its part of that copy.
//
//   artel::println("{}", to_string(artel::MeshCoordinates{.data = 1, .stage = 2}));
#pragma once

#include <cstdint>
#include <string>

namespace artel {

// -1 marks a missing axis.
struct MeshCoordinates {
  int64_t data = -1;     // index among the pipelines or tensor groups that share the lanes
  int64_t stage = -1;    // first stage, which is its position in the pipeline
  int64_t stages = 0;    // number of its stages
  int64_t pipeline = 0;  // workers in the pipeline, the distance between its stages
  int64_t tensor = -1;   // index of its part of each layer
};

// "data 1, stage 2", "data 0, stages 1 and 5", "tensor 0"; empty without a mesh.
std::string to_string(const MeshCoordinates& at);

}  // namespace artel
