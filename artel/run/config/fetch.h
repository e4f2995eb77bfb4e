// Downloads data sets and shows progress.
#pragma once

#include <filesystem>
#include <string>

#include "artel/data/fetch.h"

namespace artel {

// The folder of an entry. Downloads it if it is not on this machine.
std::filesystem::path fetch_entry(const data::CatalogueEntry& entry);

// The folder of a set of the catalogue, by name.
std::filesystem::path fetch_set(const std::string& name);

}  // namespace artel
