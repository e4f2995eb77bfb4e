// Workers that join a fit. They enter between two steps. Where lanes are added exactly, all workers
// learn of them with the sums of a step, and newcomers receive the state while the others compute
// the next step. Internal to train.
#pragma once

#include <optional>
#include <vector>

#include "artel/train/loop/arrival.h"
#include "artel/train/loop/introduction.h"
#include "artel/train/step/workload.h"
#include "artel/train/trainer_state.h"

namespace artel {

class Newcomers {
 public:
  // Borrows both.
  Newcomers(TrainerState& state, const Introduction& introduction)
      : s_(state), introduction_(introduction) {}

  // A membership ends: newcomers that were on their way are members of the next one.
  void end_membership();
  // The next one begins. See StrategyKind::adds_exactly and StrategyKind::follows_without_lanes.
  void begin_membership(bool adds_exactly, bool stands_by);
  bool adds_exactly() const { return adds_exactly_; }
  bool stands_by() const { return stands_by_; }
  // The largest number of workers. Unlimited where workers without lanes can stand by.
  int most_workers() const;

  // Before a step: worker 0 decides whether newcomers join after it.
  void announce();
  // True on worker 0 if newcomers join after this step.
  const bool& announced() const { return announced_; }
  // After a step, with whose sums all workers have learned whether newcomers join.
  void expect(bool newcomers) { expected_ = newcomers; }
  // Between two steps of all workers. Throws, so that all regroup, if newcomers enter.
  void admit();

  // These ranks of the membership receive the state during the next step.
  void receive(std::vector<bool> ranks) { receiving_ = std::move(ranks); }
  bool any_receives() const { return !receiving_.empty(); }
  bool receives(int rank) const { return any_receives() && receiving_[static_cast<size_t>(rank)]; }
  // Begins to send, or to receive. Collective.
  void begin_arrival(comm::Group& group, Workload& workload);
  // Waits until this worker may change its state. Any thread may call it.
  void wait() const;
  // After a step. Gives newcomers lanes if they have arrived: all have finished the same step and
  // divide the lanes of the next one.
  void welcome(Workload& workload);
  // The group broke before they had the state.
  void give_up() { receiving_.clear(); }

 private:
  bool accepts() const;
  // Workers learn of newcomers with the sums of a step.
  bool tells() const { return adds_exactly_ && s_.in_step; }

  TrainerState& s_;
  const Introduction& introduction_;
  bool adds_exactly_ = false;
  bool stands_by_ = false;
  bool announced_ = false, expected_ = false;
  std::vector<bool> receiving_;  // by rank; empty if none receives
  std::optional<Arrival> arrival_;
};

}  // namespace artel
