#include "artel/train/cluster.h"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>

#include "artel/base/error.h"
#include "artel/ps/server.h"

namespace artel {
namespace {

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

int number(const char* name, int fallback) {
  const std::optional<std::string> text = variable(name);
  if (!text) return fallback;
  try {
    return std::stoi(*text);
  } catch (const std::exception&) {
    fail(ErrorKind::invalid_argument, "the environment variable {} is '{}', expected a number",
         name, *text);
  }
}

}  // namespace

std::optional<comm::GroupOptions> launched_group() {
  if (variable("ARTEL_SIZE")) {
    comm::GroupOptions options;
    options.transport = variable("ARTEL_TRANSPORT").value_or("shm");
    options.rank = number("ARTEL_RANK", 0);
    options.size = number("ARTEL_SIZE", 1);
    options.address = variable("ARTEL_ADDRESS").value_or("");
    options.token = variable("ARTEL_TOKEN").value_or("");
    options.interface = variable("ARTEL_INTERFACE").value_or("");
    return options;
  }
  // The innermost launcher comes first: mpirun may itself have been started by srun.
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (variable(name)) {
      const comm::GroupOptions options = {.transport = "mpi", .size = number(name, 1)};
      return options.size > 1 ? std::optional(options) : std::nullopt;
    }
  return std::nullopt;
}

bool speaks_for_the_run() {
  for (const char* name : {"ARTEL_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (number(name, 0) > 0) return false;
  return true;
}

Cluster::Cluster() = default;

Cluster::Cluster(int, char**) {
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
    return;
  }
  const int workers = all->size() - servers_;
  require(workers >= 1, ErrorKind::invalid_argument,
          "cluster.servers: got {} of {} processes, expected at least one worker beside them",
          servers_, all->size());
  is_server_ = all->rank() >= workers;
  world_ = std::move(all);
  group_ = std::make_unique<comm::Group>(world_->split(is_server_ ? 1 : 0));
}

void Cluster::serve() {
  world_->set_phase("serving");
  ps::Server(*world_, {.workers = world_->size() - servers_}).run();
}

Cluster::~Cluster() = default;
Cluster::Cluster(Cluster&&) noexcept = default;

int Cluster::cores() const {
  cpu_set_t set;
  CPU_ZERO(&set);
  const int all = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
  if (!group_) return std::max(1, all);
  const std::vector<int> hosts = group_->host_numbers();
  const auto sharing = std::count(hosts.begin(), hosts.end(), hosts[rank()]);
  return std::max(1, all / static_cast<int>(sharing));
}

std::vector<std::string> Cluster::members() {
  const std::vector<std::string> hosts = group_ ? group_->hosts() : std::vector<std::string>{""};
  std::vector<int32_t> cores(static_cast<size_t>(size()), this->cores());
  if (group_) {
    const int32_t own = this->cores();
    group_->all_gather(std::as_bytes(std::span(&own, 1)), std::as_writable_bytes(std::span(cores)),
                       {}, {.label = "cores"});
  }
  std::vector<std::string> lines;
  for (int rank = 0; rank < size(); ++rank)
    lines.push_back(fmt::format("worker {}{}{}, {} core{}", rank, group_ ? " on host " : "",
                                hosts[rank], cores[rank], cores[rank] == 1 ? "" : "s"));
  return lines;
}

}  // namespace artel
