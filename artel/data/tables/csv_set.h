// Data sets of tables.
//
//   const artel::data::Split houses =
//       artel::data::csv("houses.csv", "", 0.2, 0, {.target = "price"});
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "artel/data/tables/table_encoder.h"

namespace artel::data {

// Opens a table, or several that match a pattern. Without `test`, a random part is held out for
// tests. Leaves out rows without a target and logs their number. Logs columns that are categorical
// although most of their fields are numbers. Uses the encoder `learnt` if there is one.
//
// Tables of 16 MiB or more are parsed once. The samples are cached in $ARTEL_DATA/tables, under a
// name derived from the content and the encoding, and memory-mapped by all processes. See
// data/tables/kept_tables.h for their lifetime.
Split csv(const std::filesystem::path& train, const std::filesystem::path& test,
          double test_fraction, uint64_t seed, const TableOptions& options = {},
          const std::shared_ptr<const TableEncoder>& learnt = {});

// The same for tables in memory. Without `test`, a part of `train` is held out.
Split table_split(const std::shared_ptr<const Table>& train,
                  const std::shared_ptr<const Table>& test, double test_fraction, uint64_t seed,
                  const TableOptions& options = {},
                  const std::shared_ptr<const TableEncoder>& learnt = {});

}  // namespace artel::data
