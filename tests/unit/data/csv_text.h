// Tables of tests, as text.
#pragma once

#include <string>

#include "artel/data/tables/csv_reader.h"

namespace artel::data {

inline Table table(const std::string& text, const CsvOptions& options = {}) {
  return parse_csv(make_bytes(text, "x.csv"), {.csv = options});
}

}  // namespace artel::data
