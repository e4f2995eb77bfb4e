#include "artel/cluster/servers_inside.h"

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/cluster/cluster.h"
#include "artel/comm/transports/transports.h"

namespace artel {

ServersInside::ServersInside(const comm::GroupOptions& place) {
  require(
      comm::meeting_of(place) != comm::Meeting::launcher && place.rank >= 0, ErrorKind::unsupported,
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
        // The worker of this process receives the same error from the group and reports it.
        log(LogLevel::debug, "server inside: {}", error.what());
      }
    });
  }
}

ServersInside::~ServersInside() {
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace artel
