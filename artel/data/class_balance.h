// Balancing of classes with different frequencies.
//
//   const std::vector<int64_t> counts = artel::data::class_counts(*set);   // say 970 and 30
//   const std::vector<double> weights = artel::data::balanced_weights(counts);
//   const artel::data::DatasetPtr even = artel::data::balanced(set);  // 970 of each
#pragma once

#include <cstdint>
#include <vector>

#include "artel/data/dataset.h"

namespace artel::data {

// The number of labels of each class, without ignored labels. Throws for sets without classes.
std::vector<int64_t> class_counts(const Dataset& set);

// Weights labels / (classes * labels of the class), over the classes that occur. The mean weight
// over all labels is 1, and each class has the same total weight. 1 for a class that does not
// occur.
std::vector<double> balanced_weights(const std::vector<int64_t>& counts);

// Repeats the samples of rarer classes until each class is as frequent as the most frequent one. If
// the factor is fractional, the seed selects the additional samples.
DatasetPtr balanced(DatasetPtr set, uint64_t seed = 0);

}  // namespace artel::data
