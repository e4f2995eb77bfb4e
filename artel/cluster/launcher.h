// What a launcher tells each process of a run about its place, in the environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "artel/comm/options.h"

namespace artel {

// How to join the run; nothing if no launcher started this process.
std::optional<comm::GroupOptions> launched_group();

// The number of a file in which a worker tells its launcher, a line each, that it has met the
// others ("PROCESS met DOOR,DOOR,... worker 4": its own door, then those of all, and its name in
// the run), that it leaves the run to them ("PROCESS left"), that they can continue without it
// ("PROCESS apart"), and that the run cannot begin because worker 0 has died with what it begins
// with ("PROCESS unbegun").
constexpr const char* kNewsVariable = "ARTEL_NEWS";
void tell_launcher(const std::string& news);
// The doors of a run that is under way, separated by commas, for a worker that is started again.
constexpr const char* kDoorsVariable = "ARTEL_DOORS";

// The number of a file in which the processes that one launcher has started write the causes of
// their errors, and what this process is called there: "worker 1".
constexpr const char* kSaidVariable = "ARTEL_SAID";
constexpr const char* kCalledVariable = "ARTEL_CALLED";
// Whether no other process of the same launcher has given this cause of an error before.
bool is_first_to_say(std::string_view cause);
// What this process is called; empty if it has no launcher that says so.
std::string own_name();

// Whether this worker prints errors that other workers report too: one worker speaks for all.
bool speaks_for_the_run();
// From now on it does, because those before it are gone.
void speak_for_the_run();

// The beginning of a command that starts the same workers again, as `artel launch` tells them.
constexpr const char* kLauncherVariable = "ARTEL_LAUNCHER";
// The same for any launcher: "artel launch --hosts a,b --", "mpirun -n 4 artel", "srun -n 4 artel".
// "artel" without one.
std::string launcher_command();
// Advice for a worker whose token the others refuse; empty if its launcher gave it the token.
std::string token_advice();

// The first of a list of hosts as Slurm writes them: "n01" of "n[01-04,7],login".
std::string first_host(std::string_view hosts);

}  // namespace artel
