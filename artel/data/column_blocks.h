// Sparse samples by blocks of features instead of by rows, in a mapped file: for solvers that visit
// one block of features at a time. Data may be larger than memory: blocks are read from the file as
// they are visited, and the system may drop them again.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "artel/base/file.h"
#include "artel/data/sparse_rows.h"

namespace artel::data {

// The entries of some features: those of features[i] are rows[starts[i]] to rows[starts[i + 1]],
// with their values. Views of the file.
struct ColumnBlock {
  std::span<const uint64_t> features;  // that occur, ascending
  std::span<const uint64_t> starts;    // one more than features
  std::span<const uint32_t> rows;      // from 0, ascending for each feature
  std::span<const float> values;
};

class ColumnBlocks {
 public:
  // Writes rows [first, last) to `path`. Block b has the features from cuts[b] up to cuts[b + 1];
  // those after the last cut are left out. With `constant`, each row also has the value 1
  // for that feature. Needs memory for one block and for 4 bytes a row.
  ColumnBlocks(const SparseRows& file, int64_t first, int64_t last, std::vector<uint64_t> cuts,
               const std::filesystem::path& path, std::optional<uint64_t> constant = {});

  int64_t rows() const { return static_cast<int64_t>(targets_.size()); }
  int blocks() const { return static_cast<int>(blocks_.size()); }
  const std::vector<float>& targets() const { return targets_; }
  const ColumnBlock& block(int index) const { return blocks_[static_cast<size_t>(index)]; }

 private:
  std::vector<float> targets_;
  std::optional<MappedFile> file_;
  std::vector<ColumnBlock> blocks_;
};

// `blocks` + 1 cuts of the file's features, and of one after them that every row has, into blocks
// of about as many entries, as some of the rows tell; at most as many blocks as features.
std::vector<uint64_t> balanced_cuts(const SparseRows& file, int blocks);

}  // namespace artel::data
