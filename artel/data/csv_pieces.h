// Cuts a table into pieces that threads can read side by side.
#pragma once

#include <vector>

#include "artel/base/thread_pool.h"
#include "artel/data/csv_reader.h"

namespace artel::data {

// Whole records, if the guess is right: see below.
struct CsvPiece {
  size_t begin = 0, end = 0;
  int64_t line = 1;  // of `begin`
};

// Pieces of about `piece_bytes` from the reader's place to the end of its bytes. They are cut at
// line ends outside of quotes, as told by whether the number of quotes before is even. A quote in
// the middle of a field, which opens nothing, makes that a wrong guess: whoever reads a piece has
// to check that its last record ends where the next piece begins, and otherwise read on from there
// in one piece.
std::vector<CsvPiece> cut_pieces(ThreadPool& pool, const CsvReader& reader, size_t piece_bytes);

}  // namespace artel::data
