// Which kernels of a plan each stage of a pipeline runs, and what stages send each other.
//
// The whole network is planned as one worker would plan it, and every kernel goes to one stage: so
// a pipeline computes the bits of one worker, wherever it is cut. A forward kernel is in the stage
// of its last node, or later if it needs what a later stage computes; a kernel of the backward pass
// is in the stage of its first node, or earlier. Values that are only computed again for the
// backward pass are computed where they are needed. So forward values go to later stages only, and
// gradients to earlier ones.
//
// A parameter belongs to the stage that finishes its gradient. Other stages may read it, too: they
// get its new values before each step. If the gradient of a later stage is only added to, by less
// than it takes itself, what is added goes to that stage: the rows of a table of tokens that is
// also the last layer. That is the one message to a later stage in the backward pass, and what
// waits for it, a piece of its own, holds up nothing else.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "artel/exec/excerpt.h"
#include "artel/plan/schedule.h"

namespace artel::plan {

// The part of a lane's work in a stage that runs without a break.
struct StagePiece {
  int stage = 0;
  Work work = Work::forward;
  bool late = false;  // after all others of the lane: it waits for an earlier stage

  auto operator<=>(const StagePiece&) const = default;
};

// What one piece sends to another after each lane.
struct StageMessage {
  StagePiece from, to;
  std::vector<int> buffers;  // of the plan
  size_t bytes = 0;
};

struct SharedParameter {
  ValueId value = -1;
  int owner = 0;             // the stage that updates it
  std::vector<int> readers;  // other stages, in order
};

class Stages {
 public:
  // `origins` are those of the first forward node of each stage (Node::origin), in order. With
  // `splits`, the gradients of weights are pieces of their own. `late` names the parameters whose
  // gradients late pieces finish, as the program of lanes of another size has them; null: those for
  // which fewer bytes travel, which depends on the size of the lane.
  Stages(const Graph& graph, const Plan& plan, std::vector<int> origins, const PipelineShape& shape,
         bool splits, const std::set<std::string>* late = nullptr);

  int stage_of(int kernel) const { return stage_[kernel]; }
  // Of a worker, in the order in which a lane passes them.
  std::vector<StagePiece> pieces(int worker) const;
  Excerpt excerpt(int worker) const;
  // Between different workers; the same list for all of them.
  const std::vector<StageMessage>& messages() const { return messages_; }
  // The stage of each gradient slot of the plan.
  const std::vector<int>& owners() const { return owners_; }
  const std::vector<SharedParameter>& shared() const { return shared_; }
  // The parameters whose gradients late pieces finish.
  const std::set<std::string>& late_gradients() const { return late_gradients_; }

 private:
  void assign(const std::vector<int>& origins);
  void find_late(const std::set<std::string>* given);
  std::map<int, std::string> gradient_names() const;
  void split_gradients();
  void find_messages();
  void find_owners();
  bool is_forward(int kernel) const { return work_[kernel] == Work::forward; }
  StagePiece piece_of(int kernel) const { return {stage_[kernel], work_[kernel], late_[kernel]}; }

  const Graph& graph_;
  const Plan& plan_;
  PipelineShape shape_;
  bool splits_;
  std::vector<int> writer_;  // of each buffer
  std::vector<int> stage_;   // of each kernel
  std::vector<Work> work_;   // and which piece of it
  std::vector<bool> late_;
  std::set<std::string> late_gradients_;
  std::vector<StageMessage> messages_;
  std::vector<int> owners_;
  std::vector<SharedParameter> shared_;
};

}  // namespace artel::plan
