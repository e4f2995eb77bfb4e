#include "artel/data/tables/column_blocks.h"

#include <gtest/gtest.h>

#include <map>

#include "artel/base/error.h"
#include "artel/data/tables/libsvm.h"
#include "artel/data/tables/sparse_sample_maker.h"
#include "tests/support/temporary_folder.h"

namespace artel::data {
namespace {

// (row, feature) to value.
using Matrix = std::map<std::pair<int64_t, uint64_t>, float>;

Matrix by_rows(const SparseFile& file, int64_t first, int64_t last, uint64_t features) {
  Matrix matrix;
  SparseSample sample;
  for (int64_t row = first; row < last; ++row) {
    file.read(row, sample);
    for (size_t i = 0; i < sample.features.size(); ++i)
      if (static_cast<uint64_t>(sample.features[i]) < features)
        matrix[{row - first, sample.features[i]}] = sample.values[i];
    matrix[{row - first, features}] = 1;
  }
  return matrix;
}

Matrix by_blocks(const ColumnBlocks& blocks) {
  Matrix matrix;
  for (int b = 0; b < blocks.blocks(); ++b) {
    const ColumnBlock& block = blocks.block(b);
    for (size_t f = 0; f < block.features.size(); ++f)
      for (uint64_t i = block.starts[f]; i < block.starts[f + 1]; ++i)
        matrix[{block.rows[i], block.features[f]}] = block.values[i];
  }
  return matrix;
}

TEST(ColumnBlocks, HoldTheSameSamples) {
  const TemporaryFolder folder;
  make_sparse_samples(folder.path() / "set", {.rows = 300, .features = 1000, .nonzeros = 12});
  const SparseFile file(map_file(folder.path() / "set"));
  const auto features = static_cast<uint64_t>(file.features());
  for (const int count : {1, 3, 50}) {
    const ColumnBlocks blocks(file, 40, 220, balanced_cuts(file, count), folder.path() / "columns",
                              features);
    EXPECT_EQ(blocks.rows(), 180);
    EXPECT_EQ(blocks.blocks(), count);
    EXPECT_EQ(by_blocks(blocks), by_rows(file, 40, 220, features));
  }
}

TEST(ColumnBlocks, OfNoRows) {
  const TemporaryFolder folder;
  make_sparse_samples(folder.path() / "set", {.rows = 5, .features = 100, .nonzeros = 3});
  const SparseFile file(map_file(folder.path() / "set"));
  const ColumnBlocks blocks(file, 2, 2, balanced_cuts(file, 4), folder.path() / "columns");
  EXPECT_EQ(blocks.rows(), 0);
  EXPECT_TRUE(blocks.block(3).features.empty());
}

TEST(BalancedCuts, GiveBlocksOfAboutAsManyEntries) {
  const TemporaryFolder folder;
  make_sparse_samples(folder.path() / "set", {.rows = 300, .features = 1000, .nonzeros = 12});
  const SparseFile file(map_file(folder.path() / "set"));
  const auto features = static_cast<uint64_t>(file.features());
  const ColumnBlocks blocks(file, 0, 300, balanced_cuts(file, 5), folder.path() / "columns",
                            features);
  size_t all = 0;
  for (int b = 0; b < 5; ++b) all += blocks.block(b).values.size();
  for (int b = 0; b < 5; ++b) EXPECT_NEAR(blocks.block(b).values.size(), all / 5.0, all / 20.0);
  // Not more blocks than features.
  const std::vector<uint64_t> cuts = balanced_cuts(file, 5000);
  EXPECT_EQ(cuts.size(), features + 2);
  EXPECT_EQ(cuts.back(), features + 1);
}

TEST(SparseSampleMaker, IsRepeatableAndRefusesNonsense) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "b"})
    make_sparse_samples(folder.path() / name, {.rows = 20, .features = 1000, .seed = 3});
  EXPECT_EQ(read_file(folder.path() / "a"), read_file(folder.path() / "b"));
  const SparseFile file(map_file(folder.path() / "a"));
  EXPECT_EQ(file.size(), 20);
  EXPECT_EQ(file.targets(), (std::vector<float>{-1, 1}));
  EXPECT_THROW(make_sparse_samples(folder.path() / "c", {.rows = 0}), Error);
}

}  // namespace
}  // namespace artel::data
