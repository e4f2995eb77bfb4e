// Sparse samples in libsvm's text format: `target index:value index:value ...` on each line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/data/dataset.h"
#include "artel/data/sparse_rows.h"

namespace artel::data {

// A mapped file and the place of each line: 8 bytes of memory for each sample, however large the
// file. Any thread, once the indices are settled.
class SparseFile final : public SparseRows {
 public:
  // Reads all lines once. Text after '#' is ignored. Throws an Error of kind corrupt that names
  // file and line.
  explicit SparseFile(Bytes bytes);

  // Indices in the file count from 1, as libsvm's do, or from 0 if any is 0. All files of a set
  // count from the same number, so a reader of several files settles it for all of them: see
  // common_first_index.
  int64_t first_index() const { return first_index_; }
  void count_from(int64_t first_index);

  int64_t size() const override { return static_cast<int64_t>(lines_.size()); }
  const std::string& name() const { return bytes_.name; }
  int64_t features() const override { return largest_ < 0 ? 0 : largest_ - first_index_ + 1; }
  // The different targets, ascending; empty if there are more than 1000.
  const std::vector<float>& targets() const { return targets_; }

  void read(int64_t index, SparseSample& sample) const override;

 private:
  Bytes bytes_;
  std::vector<uint64_t> lines_;  // offsets
  int64_t first_index_ = 1;
  int64_t largest_ = -1;  // index, as it is written
  std::vector<float> targets_;
};

// What the indices of a set count from: 0 if any of its files has an index 0 (the log says so),
// otherwise 1.
int64_t common_first_index(const std::vector<const SparseFile*>& files);

// Dense samples [features] of f32, which can also be read as sparse rows; up to a million features
// they can be read as dense ones. If all targets of the training file are whole numbers of at most
// 100 kinds they are classes in ascending order (so -1 and +1 become 0 and 1), else, and if
// `values` are asked for, values. Both sets have as many features as the wider file. Without a test
// file a random part is cut off.
Split libsvm(const std::filesystem::path& train, const std::filesystem::path& test,
             double test_fraction, uint64_t seed, bool values = false);

}  // namespace artel::data
