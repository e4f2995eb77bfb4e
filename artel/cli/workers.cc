#include "artel/cli/workers.h"

#include <fmt/format.h>

#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/cluster/launch.h"
#include "artel/cluster/token.h"
#include "artel/comm/control/socket.h"
#include "artel/comm/transports/transports.h"
#include "artel/run/config/setup.h"

namespace artel::cli {
namespace {

// The rendezvous of the ranks of a run on this machine.
comm::GroupOptions meeting_place(const LocalRun& run) {
  const comm::TransportDefinition& transport =
      comm::find_transport(run.transport == "auto" ? "shm" : run.transport);
  require(transport.meeting != comm::Meeting::launcher, ErrorKind::invalid_argument,
          "cluster.transport: got \"{}\" without MPI's launcher, which connects the workers; try "
          "mpirun -n {} artel train FILE",
          transport.name, run.workers + run.servers);
  comm::GroupOptions place = {.transport = transport.name,
                              .size = run.workers + run.servers,
                              .address = "run-" + random_token(),
                              .token = random_token()};
  if (transport.meeting == comm::Meeting::address)
    place.address = to_string(comm::control::free_endpoint("127.0.0.1"));
  return place;
}

// Every process has its own threads and buffers, so a typing error such as -n 1000 would bring the
// machine to a halt.
void check_worker_count(int workers) {
  constexpr int kMostPerCore = 32, kManyPerCore = 4;
  const int cores = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  require(workers <= kMostPerCore * cores, ErrorKind::invalid_argument,
          "-n: got {} workers for the {} of this machine, expected at most {}; try -n {}", workers,
          counted(cores, "core"), kMostPerCore * cores, cores);
  if (workers > kManyPerCore * cores)
    log(LogLevel::warning, "{} workers share {}; more than -n {} will not be faster", workers,
        counted(cores, "core"), cores);
}

}  // namespace

LocalRun local_run(const RunConfig& config) {
  return {.workers = static_cast<int>(config.cluster.workers.most),
          .servers = server_count(config),
          .outlives_workers = outlives_workers(config),
          .elastic = is_elastic(config),
          .restarts = static_cast<int>(config.cluster.restarts),
          .servers_inside = config.cluster.servers_inside,
          .transport = config.cluster.transport};
}

int launch_here(const LocalRun& run) {
  check_worker_count(run.workers);
  comm::GroupOptions group = meeting_place(run);
  std::vector<WorkerCommand> commands;
  for (group.rank = 0; group.rank < (run.servers_inside ? run.workers : group.size); ++group.rank) {
    const bool serves = group.rank >= run.workers;
    commands.push_back(
        {.name = serves ? fmt::format("server {}", group.rank - run.workers)
                        : fmt::format("worker {}", group.rank),
         .arguments = run.body ? std::vector<std::string>() : own_command(),
         .environment = worker_environment(group),
         .expendable = run.elastic || (run.outlives_workers && !serves && group.rank > 0),
         .body = run.body});
  }
  return supervise(commands, {.restarts = run.restarts, .fork = run.fork});
}

}  // namespace artel::cli
