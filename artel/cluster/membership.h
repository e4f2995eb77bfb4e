// Who trains together: the workers of a cluster from one moment on, until somebody leaves or comes.
//
// What is made for a membership (memory that others read, exchanges, the division of lanes) keeps a
// copy for as long as it lives, and is made anew for the next one. Nothing else may keep a group.
//
//   const artel::Membership now = cluster.membership();
//   artel::println("worker {} of {}", now.rank(), now.size());
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "artel/comm/control/participant.h"
#include "artel/comm/group.h"

namespace artel {

struct Membership {
  int64_t generation = 0;              // the first one is 0
  std::shared_ptr<comm::Group> group;  // null: one worker
  // By rank: their numbers in the run, and where to find them. Empty where workers cannot meet
  // again: with MPI, or without a launcher.
  std::vector<comm::control::Participant> members = {};
  int next_number = 0;  // in the run, for the next newcomer
  // With parameter servers: workers and then servers, and the servers in their order.
  std::shared_ptr<comm::Group> world = {};
  std::vector<comm::control::Participant> servers = {};

  int rank() const { return group ? group->rank() : 0; }
  int size() const { return group ? group->size() : 1; }
  // The number in the run of the worker with this rank.
  int number_of(int rank) const {
    return members.empty() ? rank : members[static_cast<size_t>(rank)].number;
  }
  // Workers and servers by their ranks in the world.
  std::vector<comm::control::Participant> everybody() const {
    std::vector<comm::control::Participant> all = members;
    all.insert(all.end(), servers.begin(), servers.end());
    return all;
  }
};

}  // namespace artel
