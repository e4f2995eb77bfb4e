// Where a network is cut into the stages of a pipeline, and in which order they work.
//
//   artel::TrainerOptions options = {.lanes = 16};
//   options.strategy_options = {artel::PipelineOptions{.pipeline = 4}};
#pragma once

#include <functional>

#include "artel/train/strategies/registry.h"

namespace artel {

struct PipelineCuts;
namespace comm {
class Group;
}  // namespace comm

struct PipelineOptions {
  int64_t pipeline = 1;  // workers of a pipeline
  std::string schedule = "auto";
  std::string cuts = "estimated";

  void visit(KeyVisitor& field);
};

// For pipelines of so many workers, each with one of the `copies` of the network that share the
// lanes. The network is the one that the stepper now compiles.
PipelineCuts choose_cuts(const Fit& fit, int workers, int copies);

// A collective call: all get what worker 0 chooses.
PipelineCuts agreed_cuts(comm::Group& group, const std::function<PipelineCuts()>& choose);

}  // namespace artel
