// Samples of which most numbers are zero, for code that does not need them dense.
#pragma once

#include <cstdint>
#include <vector>

namespace artel::data {

struct SparseSample {
  float target = 0;
  std::vector<int64_t> features;  // indices from 0, ascending, each once
  std::vector<float> values;      // the values of an index that a line has several times are added
};

// Immutable; any thread.
class SparseRows {
 public:
  virtual ~SparseRows() = default;

  virtual int64_t size() const = 0;
  // One more than the largest index of a feature; of a part, that of the whole.
  virtual int64_t features() const = 0;
  virtual void read(int64_t index, SparseSample& sample) const = 0;
};

}  // namespace artel::data
