// Samples passed by a Python program instead of files.
#pragma once

#include "artel/data/dataset.h"
#include "artel/data/tables/csv.h"

namespace artel::python {

// The name of this data set in configurations.
constexpr const char* kGivenSet = "given";

// Samples, or a table that is encoded like a CSV file. Without a test part, a share of the training
// samples is held out (data.test_fraction).
struct GivenData {
  data::Split samples = {};
  std::shared_ptr<const data::Table> table = {}, test_table = {};
  Tensor weights = {};  // weights of the rows of `table` (weighted.h); empty if all are equal
};

// Makes "given" refer to this data, in this thread, while the object exists.
class GivenDataScope {
 public:
  explicit GivenDataScope(GivenData data);
  ~GivenDataScope();
  GivenDataScope(const GivenDataScope&) = delete;
  GivenDataScope& operator=(const GivenDataScope&) = delete;

 private:
  GivenData before_;
};

}  // namespace artel::python
