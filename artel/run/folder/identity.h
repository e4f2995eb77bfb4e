// The identity of a run: a random text that all folders of the run share, on all machines.
//
// Folders of the same name on several machines may hold different runs. The identity tells whether
// one of them continues or copies another.
#pragma once

#include <filesystem>
#include <string>

#include "artel/run/folder/run_folder.h"

namespace artel {

std::string new_identity();

// The identity of the run in the folder; empty if the folder holds no run. Folders of earlier
// versions have no recorded identity: theirs is derived from the settings that decide the result.
// Throws if the configuration of such a folder cannot be read.
std::string identity_of(const RunFolder& folder);

void save_identity(const RunFolder& folder, const std::string& identity);

// A free path next to the folder, for content that is moved aside: "runs/a.replaced", or
// "runs/a.replaced-2", ...
std::filesystem::path path_aside(const RunFolder& folder);

// Moves the folder aside if it holds a different run from `identity`, and logs that. Throws if a
// process of this machine is writing that run.
void make_room(const RunFolder& folder, const std::string& identity);

}  // namespace artel
