// Paths that stand for files: a file, a folder, or a pattern such as "logs/*.csv".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace artel::data {

// Whether there is something at the path or, with *, ? or [ in it, anything that matches.
bool is_there(const std::filesystem::path& path);

// The files that a pattern matches, sorted; or the path itself. Throws an Error of kind not_found
// for a pattern that matches nothing.
std::vector<std::filesystem::path> matching_files(const std::filesystem::path& path);

struct NamedFile {
  std::filesystem::path path;
  std::string name;  // relative to the folder it was found below, or that of the file
};
// All files at a path, sorted: those that matching_files finds and, for folders, all those below.
std::vector<NamedFile> files_at(const std::filesystem::path& path);

// Tells whether the files at a path (for a folder: all those below it) have changed: a hash of
// their names relative to it, their sizes and their contents. Of more than 64 MiB, pieces of each
// file stand for the rest; of more than 100,000 files, the first in the order of their names.
uint64_t hash_files(const std::filesystem::path& path);

}  // namespace artel::data
