// Fetches data sets and shows progress.
#pragma once

#include <filesystem>
#include <string>

namespace artel {

// The folder of a set of the catalogue, fetched first if it is not on this machine.
std::filesystem::path fetch_set(const std::string& name);

}  // namespace artel
