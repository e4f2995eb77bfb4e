// What to say when a disk refuses.
#pragma once

#include <filesystem>
#include <string>

#include "artel/base/error.h"

namespace artel {

// "12 KiB free in runs/mnist"; of a path that does not exist, the nearest folder above it counts.
std::string free_space_at(const std::filesystem::path& path);

// What the standard library throws, as an Error of kind io.
Error io_error(const std::filesystem::filesystem_error& error);

// Whether an error means that something could not be written or read, and may work later.
inline bool is_disk_error(const Error& error) {
  return error.kind() == ErrorKind::io || error.kind() == ErrorKind::not_found;
}

}  // namespace artel
