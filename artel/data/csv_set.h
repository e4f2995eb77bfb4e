// Data sets of tables.
//
//   const artel::data::Split houses =
//       artel::data::csv("houses.csv", "", 0.2, 0, {.target = "price"});
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>

#include "artel/data/table_encoder.h"

namespace artel::data {

// A file or a pattern of several for training and one for tests; without the latter, a random part
// of the former. Rows without a target are left out, which the log says, as it does of a column
// that is categorical although most of its fields are numbers. An encoder that was learnt before is
// used as it is.
//
// Tables of 16 MiB or more are parsed once: the samples are kept in $ARTEL_DATA/tables under a name
// that follows from the content and all that decides how it is encoded, and mapped from there, by
// any number of processes. data/kept_tables.h says for how long.
Split csv(const std::filesystem::path& train, const std::filesystem::path& test,
          double test_fraction, uint64_t seed, const TableOptions& options = {},
          const std::shared_ptr<const TableEncoder>& learnt = {});

}  // namespace artel::data
