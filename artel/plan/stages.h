// Assigns the kernels of a program plan to pipeline stages and derives the messages between them.
//
// The whole network is planned as for one worker, and every kernel is assigned to one stage, so a
// pipeline computes the same bits as one worker for any cuts. A forward kernel belongs to the stage
// of its last node, or to a later one if it needs a value from there. A backward kernel belongs to
// the stage of its first node, or to an earlier one. Recomputed values are computed where they are
// needed. Forward values are therefore sent to later stages only, and gradients to earlier ones.
//
// A parameter is owned by the stage that completes its gradient. Other stages that read it receive
// its new values before each step. If an early stage only adds a small contribution to a gradient
// of a later stage, the contribution is sent to the later stage. An example is the rows of a token
// table that is also the last layer. This is the only message to a later stage in the backward
// pass. A separate piece, marked `deferred`, waits for it and delays nothing else.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "artel/exec/plan/excerpt.h"
#include "artel/plan/schedule.h"

namespace artel::plan {

// A part of a lane's work in a stage that runs without waiting for messages.
struct StagePiece {
  int stage = 0;
  Work work = Work::forward;
  bool deferred = false;  // runs last, because it waits for an earlier stage

  auto operator<=>(const StagePiece&) const = default;
};

// A message from one piece to another, sent for each lane.
struct StageMessage {
  StagePiece from, to;
  std::vector<int> buffers;  // indices in the plan
  size_t bytes = 0;
};

struct SharedParameter {
  ValueId value = -1;
  int owner = 0;             // the stage that updates it
  std::vector<int> readers;  // other stages, in order
};

class Stages {
 public:
  // `origins` are the origins (Node::origin) of the first forward node of each stage, in order.
  // With `splits`, weight gradients are separate pieces. `deferred` names the parameters whose
  // gradients deferred pieces complete, to match the program for lanes of another size. If null,
  // the choice that sends fewer bytes is made, which depends on the lane size. Borrows `graph` and
  // `plan`.
  Stages(const Graph& graph, const Plan& plan, std::vector<int> origins, const PipelineShape& shape,
         bool splits, const std::set<std::string>* deferred = nullptr);

  int stage_of(int kernel) const { return stage_[kernel]; }
  // The pieces of a worker, in the order in which a lane passes them.
  std::vector<StagePiece> pieces(int worker) const;
  Excerpt excerpt(int worker) const;
  // Messages between different workers, identical on all of them.
  const std::vector<StageMessage>& messages() const { return messages_; }
  // The stage of each gradient slot of the plan.
  const std::vector<int>& owners() const { return owners_; }
  const std::vector<SharedParameter>& shared() const { return shared_; }
  // The parameters whose gradients deferred pieces complete.
  const std::set<std::string>& deferred_gradients() const { return deferred_gradients_; }

 private:
  void assign(const std::vector<int>& origins);
  void find_deferred(const std::set<std::string>* given);
  std::map<int, std::string> gradient_names() const;
  void split_gradients();
  void find_messages();
  void find_owners();
  bool is_forward(int kernel) const { return work_[kernel] == Work::forward; }
  StagePiece piece_of(int kernel) const {
    return {stage_[kernel], work_[kernel], deferred_[kernel]};
  }

  const Graph& graph_;
  const Plan& plan_;
  PipelineShape shape_;
  bool splits_;
  std::vector<int> writer_;  // kernel that writes each buffer
  std::vector<int> stage_;   // by kernel
  std::vector<Work> work_;   // by kernel
  std::vector<bool> deferred_;
  std::set<std::string> deferred_gradients_;
  std::vector<StageMessage> messages_;
  std::vector<int> owners_;
  std::vector<SharedParameter> shared_;
};

}  // namespace artel::plan
