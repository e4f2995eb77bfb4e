// Data sets by name.
#pragma once

#include <filesystem>

#include "artel/data/dataset.h"

namespace artel::data {

// Images [1, 28, 28] of ten classes from the idx files in a folder, plain or gzip.
Split mnist(const std::filesystem::path& folder);
Split fashion_mnist(const std::filesystem::path& folder);
Split kmnist(const std::filesystem::path& folder);

}  // namespace artel::data
