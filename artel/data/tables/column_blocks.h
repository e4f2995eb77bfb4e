// Sparse samples stored by blocks of features in a mapped file, for solvers that visit one block at
// a time. Data may be larger than memory: blocks are read on first use, and the system may evict
// them.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "artel/base/file.h"
#include "artel/data/tables/sparse_rows.h"

namespace artel::data {

// The entries of some features, as views of the file. The rows of features[i] are rows[starts[i]]
// to rows[starts[i + 1]], with the values at the same positions.
struct ColumnBlock {
  std::span<const uint64_t> features;  // nonempty features, ascending
  std::span<const uint64_t> starts;    // features.size() + 1 entries
  std::span<const uint32_t> rows;      // from 0, ascending within each feature
  std::span<const float> values;
};

class ColumnBlocks {
 public:
  // Writes rows [first, last) to `path`. Block b has the features [cuts[b], cuts[b + 1]); later
  // features are omitted. With `constant`, each row also has the value 1 for that feature. Needs
  // memory for one block plus 4 bytes per row.
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

// `blocks` + 1 cuts that divide the file's features, plus one constant feature, into blocks with
// about the same number of entries, estimated from a sample of rows. At most as many blocks as
// features.
std::vector<uint64_t> balanced_cuts(const SparseRows& file, int blocks);

}  // namespace artel::data
