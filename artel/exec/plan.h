// The plan of a step: which kernels run in which order, and where every value lies in memory.
//
// Values with disjoint life times share memory, an output may take the place of an input that is
// not used again, and gradients lie in one contiguous region, those of the last layers first as
// they become ready, so that communication can use them without a copy. The places in that region
// are the same for every batch size of a model.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "artel/exec/kernel.h"

namespace artel {

enum class Region {
  activations,  // one for each lane; shared by values with disjoint life times
  gradients,    // one for each lane: gradients as they become ready, then observed statistics
  parameters,   // one for the worker: parameters and states
  constants,    // one for the program
};

struct Buffer {
  ValueId value = -1;  // -1: the workspace of a kernel
  Layout layout;
  size_t bytes = 0;
  Region region = Region::activations;
  int first = -1, last = -1;  // steps between which it must not be overwritten
  int root = -1;              // the buffer whose memory it shares; itself if none
  int view_of = -1;           // the buffer that it is another shape of, or -1
  size_t offset = 0;          // in its region
};

struct PlannedStep {
  std::string op;
  std::string layer;
  Kernel kernel;
  std::vector<int> inputs, outputs;  // buffers
  int workspace = -1;                // buffer, or -1
  double flops = 0;
};

// A contiguous part of the gradient region.
struct GradientSlot {
  ValueId value;  // the parameter whose gradient it is, or the state whose observation
  bool is_state;
  size_t offset, bytes;
  int ready = -1;  // the step after which no other step reads or writes it
};

struct Plan {
  std::vector<Buffer> buffers;
  std::vector<PlannedStep> steps;
  std::vector<GradientSlot> gradients;  // in the order of their offsets
  std::vector<int> buffer_of;           // for each value its own buffer, or -1 if it has none
  size_t activation_bytes = 0;
  size_t gradient_bytes = 0;
};

Plan make_plan(const Graph& graph, int threads, KernelChoices& choices);

// Throws an internal error if two buffers that are in use at the same time overlap, or a step reads
// what no step has written.
void check_plan(const Graph& graph, const Plan& plan);

}  // namespace artel
