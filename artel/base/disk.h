// Descriptions of disk errors.
#pragma once

#include <filesystem>
#include <string>

#include "artel/base/error.h"

namespace artel {

// "12 KiB free in runs/mnist". For a path that does not exist, uses its nearest existing ancestor.
std::string free_space_at(const std::filesystem::path& path);

// Converts an exception of the standard library to an Error of kind io.
Error io_error(const std::filesystem::filesystem_error& error);

// True if reading or writing failed and a retry may succeed.
inline bool is_disk_error(const Error& error) {
  return error.kind() == ErrorKind::io || error.kind() == ErrorKind::not_found;
}

}  // namespace artel
