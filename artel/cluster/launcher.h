// What a launcher tells each process of a run about its place, in the environment.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "artel/comm/options.h"

namespace artel {

// How to join the run; nothing if no launcher started this process.
std::optional<comm::GroupOptions> launched_group();

// Whether errors that other workers report too should be printed here: one worker speaks for all.
bool speaks_for_the_run();

// The first of a list of hosts as Slurm writes them: "n01" of "n[01-04,7],login".
std::string first_host(std::string_view hosts);

}  // namespace artel
