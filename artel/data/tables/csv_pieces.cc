#include "artel/data/tables/csv_pieces.h"

#include <algorithm>

namespace artel::data {
namespace {

struct Counts {
  int64_t lines = 0, quotes = 0;
};

Counts count_in(std::string_view text) {
  Counts counts;
  const bool quotes = text.find('"') != text.npos;
  for (const char c : text) counts.lines += c == '\n';
  if (quotes)
    for (const char c : text) counts.quotes += c == '"';
  return counts;
}

// The position after the first line end outside quotes. `quotes` is the number of quotes before
// `from`.
size_t next_record(std::string_view text, size_t from, int64_t quotes) {
  for (size_t i = from; i < text.size(); ++i) {
    quotes += text[i] == '"';
    if (text[i] == '\n' && quotes % 2 == 0) return i + 1;
  }
  return text.size();
}

}  // namespace

std::vector<CsvPiece> cut_pieces(ThreadPool& pool, const CsvReader& reader, size_t piece_bytes) {
  const std::string_view text = reader.text();
  const size_t first = reader.place();
  const auto parts = static_cast<int64_t>((text.size() - first + piece_bytes - 1) / piece_bytes);
  const auto start_of = [&](int64_t part) {
    return std::min(text.size(), first + static_cast<size_t>(part) * piece_bytes);
  };
  std::vector<Counts> counts(static_cast<size_t>(parts));
  pool.run(parts, [&](int64_t part) {
    counts[static_cast<size_t>(part)] =
        count_in(text.substr(start_of(part), start_of(part + 1) - start_of(part)));
  });
  std::vector<CsvPiece> pieces = {{first, text.size(), reader.next_line()}};
  Counts before = {reader.next_line(), 0};
  for (int64_t part = 1; part < parts; ++part) {
    before.lines += counts[static_cast<size_t>(part) - 1].lines;
    before.quotes += counts[static_cast<size_t>(part) - 1].quotes;
    const size_t start = start_of(part), begin = next_record(text, start, before.quotes);
    if (begin <= pieces.back().begin || begin >= text.size()) continue;
    pieces.back().end = begin;
    pieces.push_back(
        {begin, text.size(), before.lines + count_in(text.substr(start, begin - start)).lines});
  }
  return pieces;
}

}  // namespace artel::data
