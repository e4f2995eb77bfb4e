// A program plan: which kernels run in which order, and where every value lies in memory.
//
// Values with disjoint life times share memory, an output may take the place of an input that is
// not used again, and gradients lie in one contiguous region, those of the last layers first as
// they become ready, so that communication can use them without a copy. The places in that region
// are the same for every batch size of a model.
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
  activations,  // one for each frame; shared by values with disjoint life times
  gradients,    // one for each frame: gradients as they become ready, then observed statistics
  parameters,   // one for the worker: parameters and states
  constants,    // one for the program
  absent,       // nowhere: of another part of the network
};

struct Buffer {
  ValueId value = -1;  // -1: the workspace of a kernel
  Layout layout;
  size_t bytes = 0;
  Region region = Region::activations;
  Device* device = &cpu();
  int first = -1, last = -1;  // kernels between which it must not be overwritten
  int root = -1;              // the buffer whose memory it shares; itself if none
  int view_of = -1;           // the buffer that it is another shape of, or -1
  size_t offset = 0;          // in its region
};

// A kernel with its place in the plan: what it reads and writes.
struct PlannedKernel {
  std::string op;
  std::string layer;
  Direction direction = Direction::forward;
  Kernel kernel;
  std::vector<NodeId> nodes;         // that it computes; of a copy, the one it is made for
  std::vector<int> inputs, outputs;  // buffers
  int workspace = -1;                // buffer, or -1
  double flops = 0;
  // All outputs are gradients or observations that no other kernel touches, so lanes that run
  // together need only their sums.
  bool only_sums = false;
};

// A contiguous part of the gradient region.
struct GradientSlot {
  ValueId value;  // the parameter whose gradient it is, or the state whose observation
  bool is_state;
  size_t offset, bytes;
  int ready = -1;         // the kernel after which no other reads or writes it
  bool only_sum = false;  // the output of a kernel with only_sums
};

// Kernels that run without a break, where a plan is part of another (exec/excerpt.h).
struct PlanPiece {
  int begin = 0, end = 0;
  std::vector<int> arrivals;    // buffers that are filled from elsewhere before it runs
  std::vector<int> departures;  // buffers that others need after it has run
};

struct Plan {
  std::vector<Buffer> buffers;
  std::vector<PlannedKernel> kernels;     // in the order in which they run
  int forward_end = 0;                    // the kernels before it are the forward pass
  std::vector<GradientSlot> gradients;    // in the order of their offsets
  std::vector<int> buffer_of;             // for each value its own buffer, or -1 if it has none
  std::map<Device*, size_t> activations;  // the bytes of that region on each device
  size_t activation_bytes = 0;            // on all devices
  size_t gradient_bytes = 0;
  std::vector<PlanPiece> pieces;  // one after another; none: it is whole
};

// Nodes run on `device` if it has kernels for them, else on the processor; kernels that copy values
// are inserted where one device reads what another has computed. Inputs, outputs, parameters and
// gradients are the processor's.
Plan make_plan(const Graph& graph, int threads, KernelChoices& choices, Device& device = cpu(),
               const LaneCounts& lanes = {});

// Throws an internal error if two buffers that are in use at the same time overlap, or a kernel
// reads what none has written.
void check_plan(const Graph& graph, const Plan& plan);

}  // namespace artel
