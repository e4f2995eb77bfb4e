#include "artel/data/tables/parquet.h"

namespace artel::data {

Bytes map_table(const std::filesystem::path& path) {
  Bytes bytes = map_file(path);
  return bytes.text().starts_with("PAR1") ? parquet_as_csv(bytes) : bytes;
}

}  // namespace artel::data
