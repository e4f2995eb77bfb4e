// Runs the stages of one worker of a pipeline: its tasks in the order of the schedule, each lane in
// its own frame, with messages to the workers of other stages.
//
// While it exists, the stepper's programs contain only this worker's part of the network
// (plan/stages.h). Values for other stages are copied when a task ends and sent while the next one
// runs. Workers of one machine that share memory send only addresses.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "artel/cluster/mesh.h"
#include "artel/comm/group.h"
#include "artel/plan/stages.h"
#include "artel/train/loop/timeline.h"
#include "artel/train/step/lane_sums.h"
#include "artel/train/step/stepper.h"

namespace artel {

// The cuts of a network and its schedule; the same for all workers.
struct PipelineCuts {
  std::string schedule;
  std::vector<int> origins;  // first forward node of each stage
};

class PipelineRunner {
 public:
  // `group` has the workers of the pipeline, in the order of their first stages. `lanes` is the
  // number of lanes of the global batch. Errors name this worker `name`; `at` is its place in the
  // mesh. Borrows everything.
  PipelineRunner(Stepper& stepper, comm::Group& group, PipelineCuts cuts, int lanes,
                 std::string name, const MeshCoordinates& at, Stepper::Allocate allocate,
                 Timeline* timeline);
  ~PipelineRunner();
  PipelineRunner(const PipelineRunner&) = delete;
  PipelineRunner& operator=(const PipelineRunner&) = delete;

  // Runs all stages of this worker for the lanes of `work`, whose samples are x and y. Returns the
  // partial sums as in Stepper::Ready.
  std::vector<Memory> run(const Stepper::Work& work, const Tensor& x, const Tensor& y);

  // A parameter or state of the whole network that steps change, or a shard of one.
  struct Place {
    std::string name;
    int worker = 0;  // the worker that updates it
  };
  // Valid once a program has been compiled.
  const std::vector<Place>& places() const { return places_; }
  // The number of stages of the whole network.
  int stages() const { return static_cast<int>(cuts_.origins.size()); }
  // Between steps: releases the memory of activations and sums until the next step.
  void release_memory();

  double waited_seconds() const { return waited_seconds_; }

 private:
  // A message of each lane, as seen by one of its two workers.
  struct Route {
    int number = 0;  // among the routes of all workers
    int peer = 0;
    int stage = 0;  // the stage at the other end
    std::vector<int> buffers;
    size_t bytes = 0;
  };
  struct Piece {
    plan::StagePiece name;
    std::vector<Route> arrivals, departures;
  };
  struct Part {
    std::vector<Piece> pieces;
    size_t sums_from = 0;  // the first piece that computes sums over lanes
  };
  struct Lane {
    int64_t samples = 0;
    std::unique_ptr<Frame> frame;
    Memory region;
  };
  struct Mail {
    Memory memory;
    comm::Handle handle;
  };

  void restrict_program(Program& program, int64_t samples);
  void find_places(const Program& program, const plan::Stages& stages);
  void find_shared(const Program& program, const plan::Stages& stages);
  // Sends each parameter read by several workers from its owner to the others.
  void share_parameters();
  plan::PipelineShape shape(int lanes) const;
  // "stage 1", or "stages 0 and 2".
  std::string stages_name() const;
  // The order of this worker's tasks for that many lanes, with deferred pieces where they delay
  // nothing.
  struct Turn {
    int lane = 0;
    plan::StagePiece piece;
  };
  const std::vector<Turn>& turns(int lanes);
  int64_t samples_of(const Stepper::Work& work, int lane) const;

  void expect_arrivals(const Stepper::Work& work);
  void run_turn(const Turn& turn, const Stepper::Work& work, const Tensor& x, const Tensor& y);
  void run_piece(const Part& part, size_t index, Lane& lane, int number, int64_t step);
  void begin_lane(Lane& lane, int number, const Stepper::Work& work, const Tensor& x,
                  const Tensor& y);
  Memory gradients_in(const Memory& region) const;
  void finish_lane(Lane& lane, int number, const Stepper::Work& work);
  void receive(const Route& route, int lane, const Frame& frame, const std::string& where);
  void send(const Route& route, int lane, const Frame& frame);
  void wait(comm::Handle& handle, const std::string& where);
  Mail& mail(std::map<std::pair<int, int>, Mail>& box, const Route& route, int lane, size_t bytes,
             bool shared);
  uint32_t tag(const Route& route, int lane) const;
  size_t bytes_on_wire(const Route& route) const;

  Stepper& stepper_;
  comm::Group& group_;
  PipelineCuts cuts_;
  int lanes_;
  std::string name_;
  MeshCoordinates at_;
  Timeline* timeline_;
  bool splits_;
  bool shares_memory_ = false;  // among all workers of the pipeline
  LaneSums sums_;
  std::map<int64_t, Part> parts_;                                // by samples of a lane
  std::map<int, std::vector<Turn>> turns_;                       // by lanes
  std::map<int64_t, std::vector<std::unique_ptr<Frame>>> idle_;  // by samples
  std::map<int, Lane> under_way_;
  std::map<std::pair<int, int>, Mail> inbox_, outbox_;  // by route and lane
  std::vector<Place> places_;
  // A parameter, or a shard of one, that several workers read.
  struct Shared {
    std::span<float> values;
    int owner = 0;          // the worker that updates it
    std::set<int> readers;  // the other workers
  };
  // By name, for lanes of all sizes. Programs of different sizes may recompute different values, so
  // a stage may read a parameter in only one of them.
  std::map<std::string, Shared> shared_;
  // Equal for lanes of all sizes: determined by the program that is compiled first.
  std::set<std::string> deferred_gradients_;
  std::vector<plan::StagePiece> deferred_;        // of this worker
  std::vector<plan::StagePiece> deferred_needs_;  // of other workers, which these wait for
  double waited_seconds_ = 0;
};

}  // namespace artel
