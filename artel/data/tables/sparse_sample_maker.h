// Synthetic sparse samples for experiments with solvers, as libsvm text.
#pragma once

#include <cstdint>
#include <filesystem>

namespace artel::data {

struct SparseMakerOptions {
  int64_t rows = 10'000;
  int64_t features = 10'000'000;
  int64_t nonzeros = 50;       // approximate number per row
  int64_t informative = 1000;  // frequent features that determine the target
  uint64_t seed = 0;
};

// Writes a file atomically. Features follow Zipf's law like words of a language: feature k has a
// probability of about 1/k. All values are 1 / sqrt(nonzeros); targets are -1 or 1, with some
// noise. The same options give the same file.
void make_sparse_samples(const std::filesystem::path& path, const SparseMakerOptions& options);

}  // namespace artel::data
