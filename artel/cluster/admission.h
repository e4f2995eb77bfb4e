// Decides, on worker 0, which newcomers may join the run. Internal to cluster.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "artel/cluster/door.h"
#include "artel/comm/control/wire.h"

namespace artel {

// Facts about a server that a run compares: only its version.
std::string server_introduction();

class Admission {
 public:
  // Workers and servers in the run, and the most it can use.
  struct Room {
    int workers = 0, most_workers = 0;
    int servers = 0, most_servers = 0;
  };

  // Sets the facts, one per line, that a newcomer must match exactly. This process states the same
  // facts when it is a newcomer itself.
  void set_introduction(std::string facts) { introduction_ = std::move(facts); }
  const std::string& introduction() const { return introduction_; }

  // Accepts newcomers at the door while there is room, and tells the others why they were refused.
  // Returns true if it accepted any.
  bool examine(Door& door, Room room);
  // The guests at the door that were accepted.
  const std::set<int64_t>& accepted() const { return accepted_; }

  // Call when members have agreed on a membership. Counts the missing newcomers of the previous
  // one.
  void note_agreed(const comm::control::Roster& roster);
  // Call when the group of that membership has formed.
  void note_formed() { admitted_.clear(); }

 private:
  // Reason to refuse a newcomer; empty if it may enter.
  std::string objection(const comm::control::DoorRequest& newcomer, int present, int most) const;

  std::string introduction_;
  std::set<int64_t> accepted_;
  std::set<std::string> admitted_;  // doors of newcomers while the group with them is formed
  std::map<std::string, int>
      missed_;  // groups that formed without an admitted newcomer, by its door
};

}  // namespace artel
