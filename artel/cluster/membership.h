// The workers that train together until one leaves or joins.
//
// Objects that depend on a membership (shared memory, exchanges, the division of lanes) hold a copy
// of it and are recreated for the next one. Nothing else may hold a group.
//
//   const artel::Membership now = cluster.membership();
//   artel::println("worker {} of {}", now.rank(), now.size());
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "artel/comm/control/participant.h"
#include "artel/comm/group.h"

namespace artel {

struct Membership {
  int64_t generation = 0;              // the first one is 0
  std::shared_ptr<comm::Group> group;  // null for a single worker
  // Numbers in the run and addresses, by rank. Empty if workers cannot regroup: with MPI, or
  // without a launcher.
  std::vector<comm::control::Participant> members = {};
  int next_number = 0;  // number of the next newcomer
  // With parameter servers: the group of workers and servers, and the servers in order.
  std::shared_ptr<comm::Group> world = {};
  std::vector<comm::control::Participant> servers = {};

  int rank() const { return group ? group->rank() : 0; }
  int size() const { return group ? group->size() : 1; }
  // The number of workers on this worker's machine that have a lower rank.
  int place_on_machine() const {
    if (!group) return 0;
    const std::vector<int> machines = group->host_numbers();
    const auto own = machines.begin() + rank();
    return static_cast<int>(std::count(machines.begin(), own, *own));
  }
  // The number in the run of the worker with this rank.
  int number_of(int rank) const {
    return members.empty() ? rank : members[static_cast<size_t>(rank)].number;
  }
  // Workers and servers by rank in the world.
  std::vector<comm::control::Participant> everybody() const {
    std::vector<comm::control::Participant> all = members;
    all.insert(all.end(), servers.begin(), servers.end());
    return all;
  }
};

}  // namespace artel
