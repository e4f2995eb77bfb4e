// Sparse samples in libsvm's text format: `target index:value index:value ...` on each line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/data/dataset.h"
#include "artel/data/tables/sparse_rows.h"

namespace artel::data {

// A mapped file with the offset of each line, which takes 8 bytes of memory per sample. Thread safe
// after the first index has been set.
class SparseFile final : public SparseRows {
 public:
  // Reads all lines once. Text after '#' is ignored. Throws an Error of kind corrupt that names
  // file and line.
  explicit SparseFile(Bytes bytes);

  // Indices in the file count from 1, as in libsvm, or from 0 if any is 0. All files of a set must
  // count from the same number: see common_first_index.
  int64_t first_index() const { return first_index_; }
  void count_from(int64_t first_index);

  int64_t size() const override { return static_cast<int64_t>(lines_.size()); }
  const std::string& name() const { return bytes_.name; }
  int64_t features() const override { return largest_ < 0 ? 0 : largest_ - first_index_ + 1; }
  // The distinct targets, ascending; empty if more than 1000.
  const std::vector<float>& targets() const { return targets_; }

  void read(int64_t index, SparseSample& sample) const override;

 private:
  Bytes bytes_;
  std::vector<uint64_t> lines_;  // offsets
  int64_t first_index_ = 1;
  int64_t largest_ = -1;  // largest index in the file
  std::vector<float> targets_;
};

// The first index of a set: 0 (logged) if any of its files has an index 0, otherwise 1.
int64_t common_first_index(const std::vector<const SparseFile*>& files);

// Samples [features] of f32, readable as sparse rows and, up to a million features, as dense ones.
// If the targets of the training file are at most 100 distinct whole numbers, they are classes in
// ascending order (-1 and +1 become 0 and 1). Otherwise, or if `values` is set, they are values.
// Both sets have the features of the wider file. Without a test file, a random part is held out.
Split libsvm(const std::filesystem::path& train, const std::filesystem::path& test,
             double test_fraction, uint64_t seed, bool values = false);

}  // namespace artel::data
