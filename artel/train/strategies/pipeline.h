// Cuts a network into the stages of a pipeline and chooses their schedule.
//
//   artel::TrainerOptions options = {.lanes = 16};
//   options.strategy_options = {artel::PipelineOptions{.pipeline = 4}};
#pragma once

#include <functional>

#include "artel/train/strategies/registry.h"

namespace artel {

struct PipelineCuts;
struct MeshSize;
namespace comm {
class Group;
}  // namespace comm

struct PipelineOptions {
  int64_t pipeline = 1;  // workers per pipeline
  std::string schedule = "auto";
  std::string cuts = "estimated";

  void visit(KeyVisitor& field);
};

// Chooses cuts for the pipelines of a mesh, each with one of the `copies` of the network that share
// the lanes. Slow workers get small stages. The network is the one that the stepper now compiles.
PipelineCuts choose_cuts(const FitView& fit, const MeshSize& size, int copies);

// Collective. Sends worker 0's choice to all.
PipelineCuts agreed_cuts(comm::Group& group, const std::function<PipelineCuts()>& choose);

}  // namespace artel
