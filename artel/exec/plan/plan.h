// A program plan: the order of kernels, and the position of every value in memory.
//
// Values with disjoint lifetimes share memory. An output may replace an input that is not used
// again. Gradients lie in one contiguous region, in the order in which they become ready (last
// layers first), so communication uses them without a copy. Their offsets do not depend on the
// batch size.
//
//   artel::KernelChoices choices;
//   artel::ModelGraph step = artel::training_graph(model, {artel::DType::f32, {64, 784}},
//                                                  {artel::DType::i32, {64}},
//                                                  artel::loss_by_name("cross_entropy"));
//   const artel::Program program(std::move(step.graph), {}, choices);
//   for (const artel::PlannedKernel& kernel : program.plan().kernels)
//     artel::println("{} of {}", kernel.op, kernel.layer);
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "artel/exec/kernel.h"

namespace artel {

enum class Region {
  activations,  // per frame; shared by values with disjoint lifetimes
  gradients,    // per frame, on one device: gradients in the order in which they become ready, then
                // statistics
  parameters,   // per worker and device: parameters and states
  constants,    // per program and device
  absent,       // no memory: the buffer belongs to another worker's part of the network
};

struct Buffer {
  ValueId value = -1;  // -1 for the workspace of a kernel
  Layout layout;
  size_t bytes = 0;
  Region region = Region::activations;
  Device* device = &cpu();
  int first = -1, last = -1;  // kernels between which it must not be overwritten
  int root = -1;              // the buffer whose memory it shares, or itself
  int view_of = -1;           // the buffer of which it is a reshaped view, or -1
  size_t offset = 0;          // within its region
};

// A kernel with its position in the plan, its inputs, and its outputs.
struct PlannedKernel {
  std::string op;
  std::string layer;
  Direction direction = Direction::forward;
  Kernel kernel;
  std::vector<NodeId> nodes;         // the nodes that it computes; for a copy, the reader
  std::vector<int> inputs, outputs;  // buffers
  int workspace = -1;                // buffer, or -1
  double flops = 0;
  // True if all outputs are gradients that no other kernel reads. Lanes that run together then need
  // only the sums.
  bool only_sums = false;
};

// A contiguous part of the gradient region.
struct GradientSlot {
  ValueId value;  // the parameter of a gradient, or the state of an observed statistic
  bool is_state;
  size_t offset, bytes;
  int ready = -1;         // the last kernel that reads or writes it
  bool only_sum = false;  // output of a kernel with only_sums
};

// Kernels of an excerpt that run without waiting for other parts (exec/plan/excerpt.h).
struct PlanPiece {
  int begin = 0, end = 0;
  std::vector<int> arrivals;    // buffers received before it runs
  std::vector<int> departures;  // buffers sent after it has run
};

// The positions of a frame's activation buffers.
struct Placement {
  std::vector<size_t> offsets;      // offset of each buffer's root
  std::map<Device*, size_t> bytes;  // size of the region on each device

  size_t all() const;
};

struct Plan {
  std::vector<Buffer> buffers;
  std::vector<PlannedKernel> kernels;     // in execution order
  int forward_end = 0;                    // end of the forward pass
  std::vector<GradientSlot> gradients;    // by offset
  std::vector<int> buffer_of;             // the buffer of each value, or -1
  std::map<Device*, size_t> activations;  // bytes of activations on each device
  size_t activation_bytes = 0;            // on all devices
  size_t gradient_bytes = 0;
  Device* gradient_device = &cpu();  // has Region::gradients
  std::vector<PlanPiece> pieces;     // in execution order; empty if the plan is not an excerpt
};

// Nodes run on `device` if it has kernels for them, otherwise on the CPU. The plan inserts copies
// where a device reads values that another one has computed. Inputs and outputs are in CPU memory.
// Gradients are on `device` if it can change layouts, otherwise in CPU memory. Parameters, states,
// and constants are in CPU memory, too, with copies on the device that outlive a run, in its
// Region::parameters and Region::constants.
Plan make_plan(const Graph& graph, int threads, KernelChoices& choices, Device& device = cpu(),
               const LaneCounts& lanes = {});

// Throws an internal error if two buffers in use at the same time overlap, or if a kernel reads an
// unwritten value.
void check_plan(const Graph& graph, const Plan& plan);

}  // namespace artel
