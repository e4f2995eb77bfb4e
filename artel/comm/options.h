// How a group is made.
//
//   // Two workers on one machine; the other has rank 1.
//   artel::Cluster pair(artel::comm::GroupOptions{.rank = 0, .size = 2, .address = "my-run"});
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace artel::comm {

struct WatchOptions {
  double after = 10;    // seconds of waiting before the first line
  double patience = 0;  // seconds of a vital rank's silence that break the group; 0: none do
  int spared_from = 0, spared_to = 0;                   // these ranks are not vital
  std::function<void(const std::string&)> report = {};  // default: a warning in the log
};

struct GroupOptions {
  std::string transport = "shm";  // "shm" | "gloo" | "tcp" | "mpi"
  int rank = 0;  // mpi: given by the launcher; gloo: -1: any free one, -2: any free server's
  int size = 1;  // ditto
  // shm: any name that the ranks agree on. gloo, tcp: HOST:PORT at which rank 0 can be reached.
  std::string address;
  std::string token;         // a secret of the run; a process with another token is refused
  bool encrypt = false;      // gloo, tcp: everything between machines, by TLS; gloo becomes tcp
  std::string interface;     // gloo: network interface or address to use; default: as routed
  double join_timeout = 60;  // seconds for all ranks to arrive
  double timeout = 300;      // seconds for each operation, unless it says otherwise
  size_t arena_bytes = 0;    // shm: shared memory per rank, allocated as touched; 0: all there is
  // This many of the last ranks are servers, the others workers; a request for any rank gets a
  // worker's.
  int servers = 0;
  // The group continues when a worker other than rank 0 dies; ranks waiting for the dead one get an
  // error. Otherwise every death ends the group.
  bool outlives_workers = false;
  // When a worker dies, those who are left form a new group (cluster/cluster.h).
  bool elastic = true;
  // Where the workers of a run that is under way are found: this process is to join them, instead
  // of forming a group with others that begin. Empty: it begins.
  std::vector<std::string> doors = {};
  int place = -1;         // which of its launcher's workers this is
  std::string door = {};  // where this worker can be found later
  // The fewest workers that go on (fewer wait for others), and the most that are let in.
  int least = 1, most = 1 << 16;
  double wait = 3600;  // seconds that too few workers wait for others
  // Called now and then while the ranks of the group are awaited; ends that by throwing.
  std::function<void()> while_joining = {};
  WatchOptions watch = {};
  // What this rank tells rank 0 about itself with each sign of life, at most kVitalsBytes: called
  // twice a second, from a thread of the group. See PeerStatus::vitals.
  std::function<std::string()> vitals = {};

  // Whether the group ends when this rank, out of `of` ranks, dies.
  bool is_vital(int which, int of) const {
    return !outlives_workers || which == 0 || which >= of - servers;
  }
};

}  // namespace artel::comm
