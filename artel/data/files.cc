#include "artel/data/files.h"

#include <glob.h>

#include <algorithm>

#include "artel/base/checksum.h"
#include "artel/base/error.h"
#include "artel/base/file.h"
#include "artel/base/random.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

// The matches of a pattern, sorted by bytes independently of the locale.
std::vector<fs::path> matches_of(const fs::path& pattern) {
  glob_t found = {};
  const int result = ::glob(pattern.c_str(), GLOB_NOSORT, nullptr, &found);
  std::vector<fs::path> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  require(result == 0 || result == GLOB_NOMATCH, ErrorKind::io, "[{}] cannot be searched",
          pattern.string());
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool is_pattern(const fs::path& path) {
  std::error_code ignored;
  return path.native().find_first_of("*?[") != std::string::npos && !fs::exists(path, ignored);
}

// All of them below a folder.
std::vector<fs::path> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry :
       fs::recursive_directory_iterator(folder, fs::directory_options::skip_permission_denied))
    if (entry.is_regular_file()) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

// Checksum of the whole content, or of the first, the middle, and the last piece.
uint32_t content_of(const fs::path& path, bool whole) {
  constexpr size_t kPiece = 64 << 10;
  const MappedFile file(path);
  const std::span<const std::byte> bytes = file.bytes();
  if (whole || bytes.size() <= 3 * kPiece) return crc32(bytes);
  uint32_t sum = 0;
  for (const size_t first : {size_t{0}, (bytes.size() - kPiece) / 2, bytes.size() - kPiece})
    sum = crc32(bytes.subspan(first, kPiece), sum);
  return sum;
}

}  // namespace

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return is_pattern(path) ? !matches_of(path).empty() : fs::exists(path, ignored);
}

std::vector<fs::path> matching_files(const fs::path& path) {
  if (!is_pattern(path)) return {path};
  std::vector<fs::path> files = matches_of(path);
  require(!files.empty(), ErrorKind::not_found, "[{}] no file matches this pattern", path.string());
  return files;
}

std::vector<NamedFile> files_at(const fs::path& path) {
  std::vector<NamedFile> files;
  for (const fs::path& each : matching_files(path)) {
    if (!fs::is_directory(each)) {
      files.push_back({each, each.filename().string()});
      continue;
    }
    for (const fs::path& file : files_below(each))
      files.push_back({file, file.lexically_relative(each).string()});
  }
  return files;
}

uint64_t hash_files(const fs::path& path) {
  constexpr uint64_t kMostWhole = 64 << 20;
  constexpr size_t kMostFiles = 100'000;
  uint64_t key = 0, bytes = 0;
  const auto add = [&](const fs::path& file, const fs::path& name) {
    const uint64_t size = fs::file_size(file);
    bytes += size;
    key = mix_key({key, hash_name(name.string()), size, content_of(file, bytes <= kMostWhole)});
  };
  for (const fs::path& each : matching_files(path)) {
    if (!fs::is_directory(each)) {
      add(each, "");  // it may be moved, and called otherwise
      continue;
    }
    std::vector<fs::path> files = files_below(each);
    key = mix_key({key, files.size()});
    files.resize(std::min(files.size(), kMostFiles));
    for (const fs::path& file : files) add(file, file.lexically_relative(each));
  }
  return key;
}

}  // namespace artel::data
