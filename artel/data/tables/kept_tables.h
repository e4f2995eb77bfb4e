// Eviction of cached tables (data/tables/csv_set.h) from the disk.
#pragma once

#include <cstdint>
#include <filesystem>

namespace artel::data {

// The size limit: $ARTEL_TABLES_GB or, without it, half of the disk space that would be free
// without the tables. Throws if the variable is not a positive number.
uint64_t most_bytes_of_tables(const std::filesystem::path& folder);

// Removes tables unused for 30 days, then the least recently used ones, until the rest takes at
// most `most` bytes. Keeps `newest` and tables that another process is writing. A mapped table
// stays usable.
void forget_tables(const std::filesystem::path& folder, const std::filesystem::path& newest,
                   uint64_t most);

}  // namespace artel::data
