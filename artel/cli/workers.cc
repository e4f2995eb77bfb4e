#include "artel/cli/workers.h"

#include <fmt/format.h>

#include <filesystem>

#include "artel/base/file.h"
#include "artel/base/text.h"
#include "artel/train/launch.h"

namespace artel::cli {

int launch_here(int workers) {
  comm::GroupOptions group = {.transport = "shm",
                              .size = workers,
                              .address = "run-" + random_token(),
                              .token = random_token()};
  std::vector<std::string> arguments = split(read_file("/proc/self/cmdline"), '\0');
  arguments.pop_back();  // behind the last zero
  arguments[0] = std::filesystem::read_symlink("/proc/self/exe");
  std::vector<WorkerCommand> commands;
  for (group.rank = 0; group.rank < workers; ++group.rank)
    commands.push_back(
        {fmt::format("worker {}", group.rank), arguments, worker_environment(group)});
  return supervise(commands);
}

}  // namespace artel::cli
