// Sparse samples in libsvm's text format: `target index:value index:value ...` on each line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/data/dataset.h"

namespace artel::data {

struct SparseSample {
  float target = 0;
  std::vector<int64_t> features;  // indices from 0, ascending, each once
  std::vector<float> values;      // the values of an index that a line has several times are added
};

// A mapped file and the place of each line: 8 bytes of memory for each sample, however large the
// file. Any thread, once the indices are settled.
class SparseFile {
 public:
  // Reads all lines once. Text after '#' is ignored. Throws an Error of kind corrupt that names
  // file and line.
  explicit SparseFile(Bytes bytes);

  // Indices in the file count from 1, as libsvm's do, or from 0 if any is 0. The files of one set
  // count alike, so whoever reads several of them settles it for all: see common_first_index.
  int64_t first_index() const { return first_index_; }
  void count_from(int64_t first_index);

  int64_t size() const { return static_cast<int64_t>(lines_.size()); }
  const std::string& name() const { return bytes_.name; }
  // One more than the largest index, counted from 0.
  int64_t features() const { return largest_ < 0 ? 0 : largest_ - first_index_ + 1; }
  // The different targets, ascending; empty if there are more than 1000.
  const std::vector<float>& targets() const { return targets_; }

  void read(int64_t index, SparseSample& sample) const;

 private:
  Bytes bytes_;
  std::vector<uint64_t> lines_;  // offsets
  int64_t first_index_ = 1;
  int64_t largest_ = -1;  // index, as it is written
  std::vector<float> targets_;
};

// What the indices of a set count from: 0 if any of its files says so, which the log tells, or 1.
int64_t common_first_index(const std::vector<const SparseFile*>& files);

// Dense samples [features] of f32. If all targets of the training file are whole numbers of at most
// 100 kinds they are classes in ascending order (so -1 and +1 become 0 and 1), else values. Both
// sets have as many features as the wider file. Without a test file a random part is cut off.
Split libsvm(const std::filesystem::path& train, const std::filesystem::path& test,
             double test_fraction, uint64_t seed);

}  // namespace artel::data
