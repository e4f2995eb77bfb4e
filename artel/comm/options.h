// Options of a group.
//
//   // Two workers on one machine; the other has rank 1.
//   artel::Cluster pair(artel::comm::GroupOptions{.rank = 0, .size = 2, .address = "my-run"});
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace artel::comm {

struct PeerStatus;

struct WatchOptions {
  double after = 10;    // seconds of waiting before the first line
  double patience = 0;  // seconds of a vital rank's silence that end the group; 0 disables
  int spared_from = 0, spared_to = 0;                   // these ranks are not vital
  std::function<void(const std::string&)> report = {};  // default: a warning in the log
  // Asked ten times a second while this rank waits for one that gives signs of life to rank 0:
  // whether messages between the two do not arrive.
  std::function<bool(const PeerStatus& peer)> is_cut = {};
};

struct GroupOptions {
  std::string transport = "shm";  // "shm" | "gloo" | "tcp" | "mpi"
  int rank = 0;  // mpi: given by the launcher; gloo: -1: any free one, -2: any free server's
  int size = 1;  // mpi: given by the launcher
  // shm: any name that the ranks agree on. gloo, tcp: HOST:PORT at which rank 0 can be reached.
  std::string address;
  std::string token;         // a secret of the run; a process with another token is refused
  bool encrypt = false;      // gloo, tcp: everything between machines, by TLS; gloo becomes tcp
  std::string interface;     // gloo: network interface or address to use; default: as routed
  double join_timeout = 60;  // seconds for all ranks to arrive
  double timeout = 300;      // seconds for each operation without its own timeout
  size_t arena_bytes = 0;    // shm: per rank, allocated when touched; 0: the machine's memory
  // This many of the last ranks are servers, the others workers; a request for any rank gets a
  // worker's.
  int servers = 0;
  // The group continues when a worker other than rank 0 dies; ranks waiting for the dead one get an
  // error. Otherwise every death ends the group.
  bool outlives_workers = false;
  // When a worker dies, the others form a new group (cluster/cluster.h).
  bool elastic = true;
  // Addresses of the workers of a running training that this process joins. Empty to form a new
  // group.
  std::vector<std::string> doors = {};
  int place = -1;         // index among its launcher's workers
  std::string door = {};  // address at which this worker accepts others later
  // The minimum number of workers that continue (fewer wait for others) and the maximum accepted.
  int least = 1, most = 1 << 16;
  double wait = 3600;  // seconds that fewer than `least` workers wait for others
  // Called periodically while waiting for the ranks of the group. May throw to end the wait.
  std::function<void()> while_joining = {};
  WatchOptions watch = {};
  // Returns this rank's status text for rank 0, at most kVitalsBytes. A thread of the group sends
  // it with each heartbeat, twice a second. See PeerStatus::vitals.
  std::function<std::string()> vitals = {};

  // True if the group ends when rank `which` of `of` dies.
  bool is_vital(int which, int of) const {
    return !outlives_workers || which == 0 || which >= of - servers;
  }
};

}  // namespace artel::comm
