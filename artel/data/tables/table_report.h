// A summary of the columns of a table, for users.
#pragma once

#include <string>
#include <vector>

#include "artel/data/tables/table_encoder.h"

namespace artel::data {

struct ColumnReport {
  std::string name;
  std::string use;      // "number", "3 names", "target", "left out"
  int64_t missing = 0;  // fields
  std::string content;  // "0.5 to 7.9, mean 3.2" or "Berlin, Oslo, ..."
  std::string warning;  // possible mistake with advice; usually ""
};

// True if a column holds mostly numbers with decimal commas, read as names.
bool has_decimal_commas(const Table& table);

std::vector<ColumnReport> describe_columns(const Table& table, const TableOptions& options);

}  // namespace artel::data
