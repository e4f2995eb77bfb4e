// Synthetic sparse samples for experiments with solvers, as libsvm text.
#pragma once

#include <cstdint>
#include <filesystem>

namespace artel::data {

struct SparseMakerOptions {
  int64_t rows = 10'000;
  int64_t features = 10'000'000;
  int64_t nonzeros = 50;       // of a row, about
  int64_t informative = 1000;  // features that decide the target, among the frequent ones
  uint64_t seed = 0;
};

// Features are drawn like the words of a language: number k with a probability of about 1/k, so a
// few features occur in most rows, and most features in few rows. All values are 1 /
// sqrt(nonzeros); targets are -1 or 1, with some noise. Written atomically. The same options give
// the same file.
void make_sparse_samples(const std::filesystem::path& path, const SparseMakerOptions& options);

}  // namespace artel::data
