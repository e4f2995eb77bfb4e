// Parquet files, which are read as tables of text where Arrow's C++ library was installed when
// Artel was built; otherwise the file parquet/unavailable.cc says so.
#pragma once

#include <filesystem>

#include "artel/base/bytes.h"

namespace artel::data {

// The rows of a Parquet file as CSV with a header: numbers with all their digits, missing values as
// empty fields. One row group at a time is in memory; the text is a mapped file without a name in
// $ARTEL_DATA. Throws for columns of lists and the like, and for a damaged file.
Bytes parquet_as_csv(const Bytes& file);

// A table as text: a mapped CSV file, or a Parquet file, recognised by its content.
Bytes map_table(const std::filesystem::path& path);

}  // namespace artel::data
