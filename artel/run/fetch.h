// Fetches data sets and shows progress.
#pragma once

#include <filesystem>
#include <string>

#include "artel/data/fetch.h"

namespace artel {

// The folder of an entry, fetched first if it is not on this machine.
std::filesystem::path fetch_entry(const data::CatalogueEntry& entry);

// The same for a set of the catalogue, by its name.
std::filesystem::path fetch_set(const std::string& name);

}  // namespace artel
