// Parquet files, read as tables of text. Requires Arrow's C++ library at build time; otherwise
// parquet/unavailable.cc throws.
#pragma once

#include <filesystem>

#include "artel/base/bytes.h"

namespace artel::data {

// Converts a Parquet file to CSV with a header: numbers with all digits, missing values as empty
// fields. Holds one row group in memory at a time; the text is an unnamed mapped file in
// $ARTEL_DATA. Throws for nested columns and damaged files.
Bytes parquet_as_csv(const Bytes& file);

// A table as text: a mapped CSV file, or a Parquet file, recognised by its content.
Bytes map_table(const std::filesystem::path& path);

}  // namespace artel::data
