// What the steps of a fit work on: batches of samples, and the network that is compiled for them. A
// strategy that computes in its own way puts something else in its place (StrategyKind::workload).
//
// A workload is made for a membership and dropped with it. Internal to train.
#pragma once

#include <memory>
#include <optional>

#include "artel/data/loader.h"
#include "artel/train/agreement.h"
#include "artel/train/division.h"
#include "artel/train/stepper.h"
#include "artel/train/timeline.h"

namespace artel {

struct FitOptions;
struct TrainerState;

class Workload {
 public:
  virtual ~Workload() = default;

  // What takes long and needs no other worker.
  virtual void compile() = 0;
  // Before all hold the same state: throws for options that do not go with it, and compiles.
  virtual void prepare() = 0;
  // From here on, after `prepare`. What the sums of a step are of.
  virtual Metrics metrics() const = 0;
  // What workers compare before they begin.
  virtual Facts facts() const { return {}; }
  // A collective call: all get what the optimizer of one of them remembers.
  virtual void share_optimizer(comm::Group&, int) {}
  // Between steps: from now on, every kernel becomes a span of the timeline, which is borrowed.
  // Null: no longer.
  virtual void record(Timeline*) {}
  // When all hold the same state and the loader is at its place. `stand_by`: workers may be without
  // lanes.
  virtual void begin([[maybe_unused]] bool stand_by) {}

  // This worker's part of the next batch; nothing after the last.
  virtual std::optional<data::Batch> next() = 0;
  // This worker's part of a batch that a caller provides as a whole.
  virtual data::Batch part_of(const Tensor& x, const Tensor& y) const = 0;

  // Null if it has none.
  virtual Stepper* stepper() { return nullptr; }
  virtual Division* division() { return nullptr; }
};

// Batches from the loader. All is borrowed.
std::unique_ptr<Workload> batches_of(TrainerState& state, data::Loader& loader,
                                     const FitOptions& options);

}  // namespace artel
