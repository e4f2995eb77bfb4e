// A fit's batches of samples, and the network compiled for them. A strategy with its own way of
// computing provides another workload (StrategyKind::workload).
//
// Created for a membership and destroyed with it. Internal to train.
#pragma once

#include <memory>
#include <optional>

#include "artel/data/loader.h"
#include "artel/train/lane_partition.h"
#include "artel/train/loop/agreement.h"
#include "artel/train/loop/timeline.h"
#include "artel/train/step/stepper.h"

namespace artel {

struct FitOptions;
struct TrainerState;

class Workload {
 public:
  virtual ~Workload() = default;

  // Slow preparation that needs no other worker.
  virtual void compile() = 0;
  // Call before all hold the same state. Throws for incompatible options, and compiles.
  virtual void prepare() = 0;
  // The metrics of a step's sums. Call after `prepare`; so do the functions below.
  virtual Metrics metrics() const = 0;
  // Facts that workers compare before they begin.
  virtual Facts facts() const { return {}; }
  // Collective: sends the optimizer state of one worker to all.
  virtual void share_optimizer(comm::Group&, int) {}
  // Between steps: records every kernel in the timeline, which is borrowed. Null stops recording.
  virtual void record(Timeline*) {}
  // Call when all hold the same state and the loader is positioned.
  virtual void begin() {}

  // This worker's part of the next batch; empty after the last one.
  virtual std::optional<data::Batch> next() = 0;
  // This worker's part of a whole batch from a caller.
  virtual data::Batch part_of(const Tensor& x, const Tensor& y) const = 0;

  // Null without a stepper.
  virtual Stepper* stepper() { return nullptr; }
  virtual LanePartition* lane_partition() { return nullptr; }
};

// Batches from the loader. Borrows everything.
std::unique_ptr<Workload> batches_of(TrainerState& state, data::Loader& loader,
                                     const FitOptions& options);

}  // namespace artel
