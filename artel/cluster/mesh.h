// Where a worker is in the mesh: which copy of the network it works on, and which part of that it
// has.
//
//   artel::println("{}", to_string(artel::MeshCoordinates{.data = 1, .stage = 2}));
#pragma once

#include <cstdint>
#include <string>

namespace artel {

// -1: there is no such axis.
struct MeshCoordinates {
  int64_t data = -1;     // which of the pipelines or tensor groups that share the lanes
  int64_t stage = -1;    // its first stage, which is its place in the pipeline,
  int64_t stages = 0;    // how many it has,
  int64_t pipeline = 0;  // and how many workers that pipeline has: the next stage is so far on
  int64_t tensor = -1;   // which part of each layer
};

// "data 1, stage 2", "data 0, stages 1 and 5", "tensor 0"; empty: there is no mesh.
std::string to_string(const MeshCoordinates& at);

}  // namespace artel
