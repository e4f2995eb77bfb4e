// The number of lanes of a new run. A run that is resumed keeps its own.
//
// A new run has 8 lanes, or the largest smaller power of two that leaves each lane a sample (with
// batch norm, 32 samples). It has more only if it starts with more workers than that.
#pragma once

#include <cstdint>
#include <string>

namespace artel {

struct LaneRequest {
  int asked = 0;            // cluster.lanes; 0 for the default
  int64_t batch = 1;        // global batch size
  bool batch_norm = false;  // samples are normalised by the statistics of their lane
  int workers = 1;          // at the start
  int sharing = 1;          // workers of a copy of the network (MeshSize::workers)
};

// Depends on nothing but the batch and the network.
int default_lanes(int64_t batch, bool batch_norm);

struct LaneCount {
  int lanes = 1;
  int before = 1;  // the requested number or the default, as used for fewer workers

  bool raised() const { return lanes > before; }
};

// Each worker, or in a mesh each copy of the network, gets at least one.
LaneCount lanes_of_new_run(const LaneRequest& request);

// The log line for a raised number of lanes, which changes the bits.
std::string raised_lanes_text(const LaneCount& count, int workers);

}  // namespace artel
