#include "artel/cluster/servers_inside.h"

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/cluster/cluster.h"

namespace artel {

ServersInside::ServersInside(const comm::GroupOptions& place) {
  require(
      place.transport != "mpi" && place.rank >= 0, ErrorKind::unsupported,
      "cluster.servers_inside: got transport {} and rank {}, expected shm, or gloo with --rank: "
      "MPI gives each process only one rank; try separate server processes",
      place.transport, place.rank);
  const int workers = place.size - place.servers;
  for (int server = place.rank; server < place.servers; server += workers) {
    comm::GroupOptions own = place;
    own.rank = workers + server;
    threads_.emplace_back([own] {
      try {
        Cluster(own).serve();
      } catch (const std::exception& error) {
        // The worker beside it gets the same error from the group, and reports it.
        log(LogLevel::debug, "server inside: {}", error.what());
      }
    });
  }
}

ServersInside::~ServersInside() {
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace artel
