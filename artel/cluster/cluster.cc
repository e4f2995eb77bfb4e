#include "artel/cluster/cluster.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <span>
#include <string>

#include "artel/base/error.h"
#include "artel/cluster/launcher.h"
#include "artel/ps/server.h"

namespace artel {
namespace {

// The cores that this process was given.
cpu_set_t own_cores() {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (sched_getaffinity(0, sizeof cores, &cores) != 0) CPU_SET(0, &cores);
  return cores;
}

}  // namespace

Cluster::Cluster() {
  const cpu_set_t own = own_cores();
  cores_ = {std::max(1, CPU_COUNT(&own))};
}

Cluster::Cluster(int, char**) : Cluster() {
  if (const std::optional<comm::GroupOptions> options = launched_group()) connect(*options);
}

Cluster::Cluster(const comm::GroupOptions& options) { connect(options); }

void Cluster::connect(const comm::GroupOptions& options) {
  auto all = std::make_unique<comm::Group>(comm::Group::connect(options));
  // An MPI that does not understand its launcher leaves each worker alone in a world of its own.
  require(all->size() == options.size, ErrorKind::communication,
          "[cluster] workers: got {} by {}, expected the {} that were started; try mpirun, or srun "
          "--mpi=pmix",
          all->size(), all->transport(), options.size);
  servers_ = options.servers;
  if (servers_ == 0) {
    group_ = std::move(all);
    share_cores();
    return;
  }
  const int workers = all->size() - servers_;
  require(workers >= 1, ErrorKind::invalid_argument,
          "cluster.servers: got {} of {} processes, expected at least one worker beside them",
          servers_, all->size());
  is_server_ = all->rank() >= workers;
  world_ = std::move(all);
  group_ = std::make_unique<comm::Group>(world_->split(is_server_ ? 1 : 0));
  share_cores();
}

void Cluster::attempt(const std::function<void()>& body) {
  try {
    body();
  } catch (const std::exception& error) {
    if (group_) group_->abort(fmt::format("worker {}: {}", rank(), error.what()));
    throw;
  }
}

void Cluster::serve() {
  world_->set_phase("serving");
  ps::Server(*world_, {.workers = world_->size() - servers_}).run();
}

Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;

// Launchers may bind each process to cores of its own, or let all of a machine use all of its
// cores.
void Cluster::share_cores() {
  const cpu_set_t own = own_cores();
  std::vector<cpu_set_t> given(static_cast<size_t>(size()));
  group_->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(given)),
                     {}, {.label = "cores"});
  const std::vector<int> hosts = group_->host_numbers();
  cores_.clear();
  for (const int host : hosts) {
    cpu_set_t of_host;
    CPU_ZERO(&of_host);
    int sharing = 0;
    for (size_t rank = 0; rank < given.size(); ++rank) {
      if (hosts[rank] != host) continue;
      CPU_OR(&of_host, &of_host, &given[rank]);
      ++sharing;
    }
    cores_.push_back(std::max(1, CPU_COUNT(&of_host) / sharing));
  }
}

std::vector<std::string> Cluster::members() const {
  const std::vector<std::string> hosts = group_ ? group_->hosts() : std::vector<std::string>{""};
  std::vector<std::string> lines;
  for (int rank = 0; rank < size(); ++rank)
    lines.push_back(fmt::format("worker {}{}{}, {} core{}", rank, group_ ? " on host " : "",
                                hosts[rank], cores_[rank], cores_[rank] == 1 ? "" : "s"));
  return lines;
}

}  // namespace artel
