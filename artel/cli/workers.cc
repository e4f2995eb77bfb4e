#include "artel/cli/workers.h"

#include <fmt/format.h>

#include <thread>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/base/plural.h"
#include "artel/cluster/launch.h"
#include "artel/cluster/token.h"
#include "artel/comm/control/socket.h"

namespace artel::cli {
namespace {

// Where the ranks of a run on this machine find each other.
comm::GroupOptions meeting_place(const LocalRun& run) {
  require(run.transport != "mpi", ErrorKind::invalid_argument,
          "cluster.transport: got \"mpi\" without MPI's launcher, which connects the workers; try "
          "mpirun -n {} artel train FILE",
          run.workers + run.servers);
  const bool by_sockets = run.transport == "gloo" || run.transport == "tcp";
  comm::GroupOptions place = {.transport = by_sockets ? run.transport : "shm",
                              .size = run.workers + run.servers,
                              .address = "run-" + random_token(),
                              .token = random_token()};
  if (by_sockets)
    place.address = fmt::format(
        "127.0.0.1:{}",
        comm::control::port_of(comm::control::listen_at({.host = "127.0.0.1", .port = 0}).get()));
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

int launch_here(const LocalRun& run) {
  check_worker_count(run.workers);
  comm::GroupOptions group = meeting_place(run);
  std::vector<WorkerCommand> commands;
  for (group.rank = 0; group.rank < (run.servers_inside ? run.workers : group.size); ++group.rank) {
    const bool serves = group.rank >= run.workers;
    commands.push_back(
        {.name = serves ? fmt::format("server {}", group.rank - run.workers)
                        : fmt::format("worker {}", group.rank),
         .arguments = own_command(),
         .environment = worker_environment(group),
         .expendable = run.elastic || (run.outlives_workers && !serves && group.rank > 0)});
  }
  return supervise(commands, {.restarts = run.restarts});
}

}  // namespace artel::cli
