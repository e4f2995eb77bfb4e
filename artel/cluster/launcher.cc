#include "artel/cluster/launcher.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <cstdlib>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/cluster/token.h"

namespace artel {
namespace {

std::atomic<bool> has_taken_over{false};  // of this process, as the environment is

std::optional<std::string> variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? std::optional<std::string>(value) : std::nullopt;
}

int number(const char* name, int fallback) {
  const std::optional<std::string> text = variable(name);
  if (!text) return fallback;
  int value = 0;
  const char* const end = text->data() + text->size();
  const auto [rest, error] = std::from_chars(text->data(), end, value);
  require(error == std::errc() && rest == end, ErrorKind::invalid_argument,
          "the environment variable {} is '{}', expected a number", name, *text);
  return value;
}

// Builds the group from Slurm's environment variables, without MPI.
comm::GroupOptions slurm_group() {
  constexpr int kFirstPort = 20000, kPorts = 12000;  // below the ephemeral ports
  const int job = number("SLURM_JOB_ID", 0), step = number("SLURM_STEP_ID", 0);
  comm::GroupOptions options = {.rank = number("SLURM_PROCID", 0),
                                .size = number("SLURM_STEP_NUM_TASKS", 1),
                                .address = fmt::format("slurm-{}-{}", job, step)};
  options.token = variable("ARTEL_TOKEN").value_or("");
  if (number("SLURM_STEP_NUM_NODES", 1) == 1) return options;
  options.transport = "gloo";
  if (options.token.empty()) options.token = private_token(options.address);
  options.address = fmt::format(
      "{}:{}", first_host(variable("SLURM_STEP_NODELIST").value_or("")),
      kFirstPort +
          (uint64_t{64} * static_cast<uint64_t>(job) + static_cast<uint64_t>(step)) % kPorts);
  return options;
}

std::optional<comm::GroupOptions> among_several(const comm::GroupOptions& options) {
  return options.size > 1 ? std::optional(options) : std::nullopt;
}

}  // namespace

std::string first_host(std::string_view hosts) {
  const size_t bracket = hosts.find_first_of("[,");
  std::string host(hosts.substr(0, bracket));
  if (bracket == hosts.npos || hosts[bracket] == ',') return host;
  const std::string_view numbers = hosts.substr(bracket + 1);
  host += numbers.substr(0, numbers.find_first_of("-,]"));
  const size_t closing = numbers.find(']');
  if (closing == numbers.npos) return host;
  return host + first_host(numbers.substr(closing + 1));
}

std::optional<comm::GroupOptions> launched_group() {
  comm::GroupOptions options;
  // The innermost launcher comes first: mpirun may itself have been started by srun.
  if (variable("ARTEL_SIZE")) {
    options.transport = variable("ARTEL_TRANSPORT").value_or("shm");
    options.rank = number("ARTEL_RANK", 0);
    options.size = number("ARTEL_SIZE", 1);
    options.address = variable("ARTEL_ADDRESS").value_or("");
    options.token = variable("ARTEL_TOKEN").value_or("");
    options.interface = variable("ARTEL_INTERFACE").value_or("");
    options.place = options.rank;
    if (const auto doors = variable(kDoorsVariable)) options.doors = split(*doors, ',');
    return options;
  }
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (variable(name)) return among_several({.transport = "mpi", .size = number(name, 1)});
  if (!variable("SLURM_STEP_NUM_TASKS")) return std::nullopt;
  // Under Slurm, MPI needs PMIx, which `srun --mpi=pmix` provides.
  options = slurm_group();
  if (variable("PMIX_RANK")) options = {.transport = "mpi", .size = options.size};
  return among_several(options);
}

std::string launcher_command() {
  if (const auto words = variable(kLauncherVariable)) return *words;
  if (variable("ARTEL_SIZE")) return "artel";
  for (const char* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (number(name, 1) > 1) return fmt::format("mpirun -n {} artel", number(name, 1));
  const int tasks = number("SLURM_STEP_NUM_TASKS", 1);
  return tasks > 1 ? fmt::format("srun -n {} artel", tasks) : "artel";
}

std::string token_advice() {
  if (variable("ARTEL_SIZE") || variable("ARTEL_TOKEN") || !variable("SLURM_STEP_NUM_TASKS"))
    return {};
  return fmt::format(
      "under srun the token comes from {}, which must be the same on all hosts; without a shared "
      "home folder, give all tasks one secret: export ARTEL_TOKEN=$(openssl rand -hex 32) before "
      "srun",
      private_key_file());
}

void tell_launcher(const std::string& news) {
  const int file = number(kNewsVariable, -1);
  if (file < 0) return;
  const std::string line = fmt::format("{} {}\n", ::getpid(), news);
  (void)!::write(file, line.data(), line.size());
}

// Each process appends its entry and checks whether it is the first. Appending is atomic, so no
// lock is needed.
bool is_first_to_say(std::string_view cause) {
  const int file = number(kSaidVariable, -1);
  if (file < 0) return true;
  const std::string own = fmt::format("{} {}", ::getpid(), cause);
  if (::write(file, own.c_str(), own.size() + 1) != std::ssize(own) + 1) return true;
  std::string all;
  std::array<char, 4096> piece;
  for (ssize_t got = 0; (got = ::pread(file, piece.data(), piece.size(), std::ssize(all))) > 0;)
    all.append(piece.data(), static_cast<size_t>(got));
  for (const std::string& entry : split(all, '\0'))
    if (const size_t end = entry.find(' '); entry.substr(end + 1) == cause) return entry == own;
  return true;
}

std::string own_name() { return variable(kCalledVariable).value_or(""); }

void speak_for_the_run() { has_taken_over = true; }

bool speaks_for_the_run() {
  if (has_taken_over) return true;
  if (variable(kDoorsVariable)) return false;
  for (const char* name : {"ARTEL_RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK", "SLURM_PROCID"})
    if (number(name, 0) > 0) return false;
  return true;
}

}  // namespace artel
