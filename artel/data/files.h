// Paths of data: a file, a folder, or a pattern such as "logs/*.csv".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace artel::data {

// True if the path exists or, with *, ?, or [ in it, matches anything.
bool is_there(const std::filesystem::path& path);

// The files that a pattern matches, sorted; or the path itself. Throws an Error of kind not_found
// for a pattern that matches nothing.
std::vector<std::filesystem::path> matching_files(const std::filesystem::path& path);

struct NamedFile {
  std::filesystem::path path;
  std::string name;  // relative to the searched folder, or the file name
};
// All files at a path, sorted: those of matching_files and, for folders, all files below.
std::vector<NamedFile> files_at(const std::filesystem::path& path);

// A hash of the files at a path (for a folder, of all files below it): relative names, sizes, and
// contents. Beyond 64 MiB, only pieces of each file are read; beyond 100,000 files, only the first
// by name.
uint64_t hash_files(const std::filesystem::path& path);

}  // namespace artel::data
