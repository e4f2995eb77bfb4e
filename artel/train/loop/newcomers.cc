#include "artel/train/loop/newcomers.h"

#include <limits>
#include <utility>

namespace artel {

void Newcomers::end_membership() {
  arrival_.reset();
  receiving_.clear();
  expected_ = false;
}

void Newcomers::begin_membership(bool adds_exactly, bool stands_by) {
  adds_exactly_ = adds_exactly;
  stands_by_ = stands_by;
}

int Newcomers::most_workers() const {
  return stands_by_ ? std::numeric_limits<int>::max() : s_.lanes;
}

bool Newcomers::accepts() const {
  return introduction_.can_compare() && s_.cluster.accepts_newcomers(most_workers());
}

// Does not interrupt a worker that receives the state in this step.
void Newcomers::announce() { announced_ = tells() && !arrival_ && accepts(); }

void Newcomers::admit() {
  if (std::exchange(expected_, false)) s_.cluster.receive_newcomers();
  if (!tells() && accepts()) s_.cluster.invite();
}

void Newcomers::begin_arrival(comm::Group& group, Workload& workload) {
  if (!any_receives()) return;
  std::vector<std::span<float>> state = workload.stepper()->update().memory();
  state.push_back(s_.parameters.block());
  workload.lane_partition()->set(lanes_without(receiving_, s_.lanes));
  arrival_.emplace(group, receiving_, state);
}

void Newcomers::wait() const {
  if (arrival_) arrival_->wait();
}

void Newcomers::welcome(Workload& workload) {
  if (!arrival_) return;
  arrival_.reset();
  receiving_.clear();
  workload.lane_partition()->divide_among(s_.cluster.membership());
  workload.lane_partition()->align();
}

}  // namespace artel
