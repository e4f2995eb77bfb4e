// How a group is made.
#pragma once

#include <cstddef>
#include <functional>
#include <string>

namespace artel::comm {

struct WatchOptions {
  double after = 10;                                    // seconds of waiting before the first line
  std::function<void(const std::string&)> report = {};  // default: a warning in the log
};

struct GroupOptions {
  std::string transport = "shm";  // "shm" | "gloo" | "mpi"
  int rank = 0;  // mpi: given by the launcher; gloo: -1 for any that is free, -2: of a server
  int size = 1;  // ditto
  // shm: any name that the ranks agree on. gloo: HOST:PORT at which rank 0 can be reached.
  std::string address;
  std::string token;         // a secret of the run; who shows another one is refused
  std::string interface;     // gloo: network interface or address to use; default: as routed
  double join_timeout = 60;  // seconds for all ranks to arrive
  double timeout = 300;      // seconds for each operation, unless it says otherwise
  size_t arena_bytes = 0;    // shm: shared memory for each rank, used as touched; 0: all there is
  // The last so many ranks are servers, the others workers: who asks for any rank gets a worker's.
  int servers = 0;
  // The group goes on when a worker dies, unless it is rank 0; who waits for the dead one gets an
  // error. Otherwise every death ends the group.
  bool outlives_workers = false;
  WatchOptions watch = {};

  // Whether the group ends when that rank of `of` ranks dies.
  bool is_vital(int which, int of) const {
    return !outlives_workers || which == 0 || which >= of - servers;
  }
};

}  // namespace artel::comm
