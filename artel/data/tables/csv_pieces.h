// Cuts a table into pieces for parallel parsing.
#pragma once

#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/data/tables/csv_reader.h"

namespace artel::data {

// A piece that consists of whole records if the guess is right (see cut_pieces).
struct CsvPiece {
  size_t begin = 0, end = 0;
  int64_t line = 1;  // line number of `begin`
};

// Pieces of about `piece_bytes` from the reader's position to the end. They are cut at line ends
// outside of quotes, where the number of preceding quotes is even. A stray quote inside a field
// makes this guess wrong. The caller must check that the last record of a piece ends where the next
// piece begins, and otherwise read the rest as one piece.
std::vector<CsvPiece> cut_pieces(ThreadPool& pool, const CsvReader& reader, size_t piece_bytes);

}  // namespace artel::data
