// How many of the tables that were parsed once (data/csv_set.h) stay on the disk.
#pragma once

#include <cstdint>
#include <filesystem>

namespace artel::data {

// $ARTEL_TABLES_GB or, without it, half of what would be free on the disk without them. Throws if
// that is no number above 0.
uint64_t most_bytes_of_tables(const std::filesystem::path& folder);

// Removes tables that nobody has used for 30 days and, of the others, those first that were not
// used for the longest time, until the rest takes at most `most` bytes. `newest` stays, and nothing
// is removed that another process is about to make. Whoever has mapped a table keeps it.
void forget_tables(const std::filesystem::path& folder, const std::filesystem::path& newest,
                   uint64_t most);

}  // namespace artel::data
