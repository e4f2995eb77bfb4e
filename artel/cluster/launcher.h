// Environment variables through which a launcher and its workers communicate.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "artel/comm/options.h"

namespace artel {

// The group that this process should join. Empty if no launcher started it.
std::optional<comm::GroupOptions> launched_group();

// File descriptor for status lines from the workers to the launcher:
//   PROCESS met DOOR,DOOR,... worker 4   connected to the others; its own door comes first
//   PROCESS left                         left the run in good order
//   PROCESS apart                        stopped; the others may continue without it
constexpr const char* kNewsVariable = "ARTEL_NEWS";
void tell_launcher(const std::string& news);
// Doors of a running training, separated by commas. Set for a restarted worker.
constexpr const char* kDoorsVariable = "ARTEL_DOORS";

// File descriptor of a file, shared by all processes of a launcher, that collects the causes of
// their errors.
constexpr const char* kSaidVariable = "ARTEL_SAID";
// The name of this process in messages: "worker 1".
constexpr const char* kCalledVariable = "ARTEL_CALLED";
// Records the cause. Returns true if no other process of the launcher has reported it before.
bool is_first_to_say(std::string_view cause);
// The name of this process; empty without a launcher.
std::string own_name();

// True if this worker prints the errors that all workers report.
bool speaks_for_the_run();
// Makes this worker print them, because the workers before it are lost.
void speak_for_the_run();

// Beginning of a command that starts the same workers again. Set by `artel launch`.
constexpr const char* kLauncherVariable = "ARTEL_LAUNCHER";
// The same for any launcher: "artel launch --hosts a,b --", "mpirun -n 4 artel", "srun -n 4 artel",
// or "artel" without a launcher.
std::string launcher_command();
// Advice for a worker with a wrong token. Empty if the launcher provided the token.
std::string token_advice();

// The first host of a Slurm host list: "n01" for "n[01-04,7],login".
std::string first_host(std::string_view hosts);

}  // namespace artel
