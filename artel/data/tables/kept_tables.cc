#include "artel/data/tables/kept_tables.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <vector>

#include "artel/base/error.h"
#include "artel/base/log.h"
#include "artel/data/tables/number.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLimit = "ARTEL_TABLES_GB";

// Files may go while they are counted.
uint64_t bytes_in(const fs::path& folder) {
  uint64_t bytes = 0;
  std::error_code gone;
  for (fs::recursive_directory_iterator entry(folder, gone), end; !gone && entry != end;
       entry.increment(gone)) {
    std::error_code none;
    const uint64_t size = entry->file_size(none);
    if (!none) bytes += size;
  }
  return bytes;
}

}  // namespace

uint64_t most_bytes_of_tables(const fs::path& folder) {
  if (const char* const given = std::getenv(kLimit); given && *given) {
    const std::optional<double> gigabytes = parse_number(given);
    require(gigabytes && *gigabytes > 0 && *gigabytes < 1e9, ErrorKind::invalid_argument,
            "{}: got '{}', expected a number of gigabytes such as 20", kLimit, given);
    return static_cast<uint64_t>(*gigabytes * 1e9);
  }
  std::error_code unknown;
  const fs::space_info space = fs::space(folder, unknown);
  return unknown ? UINT64_MAX : (space.available + bytes_in(folder)) / 2;
}

void forget_tables(const fs::path& folder, const fs::path& newest, uint64_t most) {
  constexpr auto kUnused = std::chrono::days(30);
  struct Kept {
    fs::file_time_type used;
    fs::path path;
    uint64_t bytes;
  };
  std::vector<Kept> tables;
  std::error_code ignored;
  uint64_t all = bytes_in(newest);
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const auto used = entry.last_write_time(ignored);
    if (entry.path() == newest) continue;
    if (fs::file_time_type::clock::now() - used > kUnused)
      fs::remove_all(entry.path(), ignored);
    else if (entry.is_directory(ignored) && !entry.path().has_extension())
      tables.push_back({used, entry.path(), bytes_in(entry.path())});
  }
  std::sort(tables.begin(), tables.end(),
            [](const Kept& a, const Kept& b) { return a.used > b.used; });
  for (const Kept& table : tables) {
    all += table.bytes;
    if (all <= most) continue;
    log(LogLevel::info, "removing the cached table {} to make room ({})", table.path.string(),
        kLimit);
    fs::remove_all(table.path, ignored);
    all -= table.bytes;
  }
}

}  // namespace artel::data
