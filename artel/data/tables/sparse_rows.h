// Access to samples as sparse rows.
#pragma once

#include <cstdint>
#include <vector>

namespace artel::data {

struct SparseSample {
  float target = 0;
  std::vector<int64_t> features;  // indices from 0, ascending, each once
  std::vector<float> values;      // values of a repeated index are added
};

// Immutable and thread safe.
class SparseRows {
 public:
  virtual ~SparseRows() = default;

  virtual int64_t size() const = 0;
  // One more than the largest feature index; a part has the number of the whole set.
  virtual int64_t features() const = 0;
  virtual void read(int64_t index, SparseSample& sample) const = 0;
};

}  // namespace artel::data
